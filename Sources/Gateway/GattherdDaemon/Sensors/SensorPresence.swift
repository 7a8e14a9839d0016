import GattherdBluetooth
import GattherdGATT
import GattherdModel

/// The presence of one sensor and its last frames.
struct SensorPresence: Sendable {
    /// A payload to decode, and its destination.
    struct Heard {
        let octets: [UInt8]
        let binding: StreamBinding
        /// True if the payload is no new reading, and only lets its events last.
        let isRepetition: Bool
    }

    /// The result of a check.
    enum Status: Hashable, Sendable {
        /// The sensor counts as away after this time without an advertisement.
        case present(timeLeft: Duration)
        /// No advertisement was received for this time.
        case away(silence: Duration)
    }

    /// An advertisement whose repetitions have nothing new for a time.
    private struct Repeated: Sendable {
        let advertisement: HeardAdvertisement
        let end: SuspendingClock.Instant
        /// The longest silence of its frames.
        let silence: Duration
    }

    private var lastHeard: SuspendingClock.Instant?
    /// The longest silence of the frames heard since the sensor arrived; `nil` before the first one.
    private var silence: Duration?
    private var filter = FrameFilter()
    private var repeated: Repeated?
    /// The last time that each frame with events was returned.
    private var returned: [AdvertisedFrames.ID: SuspendingClock.Instant] = [:]
    /// The last advertisement with frames of the profiles, or with any data if there was none; `nil` before the first.
    ///
    /// A repetition does not replace it, although its strength may differ.
    private(set) var lastAdvertisement: HeardAdvertisement?

    var isAway: Bool { lastHeard == nil }

    /// Records an advertisement and returns its new payloads, and repetitions of events that have to last.
    mutating func record(
        _ advertisement: HeardAdvertisement,
        of sensor: Sensor,
        now: SuspendingClock.Instant
    ) -> [Heard] {
        lastHeard = now
        if isRepetition(advertisement, at: now) { return [] }
        let payloads = filter.payloads(of: advertisement, sensor.frames, now: now)
        let isUseful = !payloads.isEmpty || silence == nil && !advertisement.frames.isEmpty
        if isUseful || lastAdvertisement == nil { lastAdvertisement = advertisement }
        let heard = payloads.compactMap { due($0.payload, isNew: $0.isNew, of: sensor, now: now) }
        if let longest = payloads.map({ sensor.frames[$0.payload.frame].silence }).max() {
            silence = max(silence ?? .zero, longest)
            repeated = repetitionEnd(of: payloads.map(\.payload), sensor).map {
                Repeated(advertisement: advertisement, end: $0, silence: longest)
            }
        }
        return heard
    }

    /// Returns a payload that is new, or whose events have to last because the sensor repeats it; `nil` for others.
    private mutating func due(
        _ payload: AdvertisedFrames.Payload,
        isNew: Bool,
        of sensor: Sensor,
        now: SuspendingClock.Instant
    ) -> Heard? {
        guard let binding = sensor.bindings[payload.frame] else { return nil }
        let heard = Heard(octets: payload.octets, binding: binding, isRepetition: !isNew)
        guard let pause = sensor.eventPause(of: payload.frame) else { return isNew ? heard : nil }
        if !isNew, let last = returned[payload.frame], now < last + pause { return nil }
        returned[payload.frame] = now
        return heard
    }

    /// Returns the time until which repetitions of an advertisement with these payloads have nothing to decode.
    private func repetitionEnd(
        of payloads: [AdvertisedFrames.Payload],
        _ sensor: Sensor
    ) -> SuspendingClock.Instant? {
        guard let end = filter.repetitionEnd(of: payloads, sensor.frames) else { return nil }
        let events = payloads.compactMap { payload -> SuspendingClock.Instant? in
            let pause = sensor.eventPause(of: payload.frame)
            return pause.flatMap { pause in returned[payload.frame].map { $0 + pause } }
        }
        return min(end, events.min() ?? end)
    }

    /// Records the silence of an advertisement that repeats the last one; returns false for all others.
    private mutating func isRepetition(_ advertisement: HeardAdvertisement, at now: SuspendingClock.Instant) -> Bool {
        // In place, because a copy would cost more than the comparison.
        guard let end = repeated?.end, now < end else { return false }
        guard let silence = repeated?.silence, repeated?.advertisement.hasContent(of: advertisement) == true else {
            return false
        }
        self.silence = max(self.silence ?? .zero, silence)
        return true
    }

    /// Checks whether the sensor is still heard; it counts as away from now on if not.
    ///
    /// The limit never decreases while the sensor is present, so that the next check is not too late.
    mutating func check(_ sensor: Sensor, now: SuspendingClock.Instant) -> Status {
        let limit = sensor.silence ?? silence ?? sensor.shortestSilence
        guard let heard = lastHeard, heard + limit > now else {
            (lastHeard, silence) = (nil, nil)
            filter.removeParts()
            return .away(silence: limit)
        }
        return .present(timeLeft: heard + limit - now)
    }
}
