import GattherdBluetooth
import GattherdGATT
import GattherdModel

/// The presence of one sensor and its last frames.
struct SensorPresence: Sendable {
    /// New bytes and their destination.
    typealias New = (octets: [UInt8], binding: StreamBinding)

    /// The result of a check.
    enum Status: Hashable, Sendable {
        /// The sensor counts as away after this time without an advertisement.
        case present(timeLeft: Duration)
        /// No advertisement was received for this time.
        case away(silence: Duration)
    }

    /// An advertisement whose repetitions have nothing new for a time.
    private final class Repeated: Sendable {
        private let frames: [HeardAdvertisement.Frame]
        private let name: String?
        private let services: [BluetoothUUID]
        /// The longest silence of its frames.
        let silence: Duration
        private let end: SuspendingClock.Instant

        init(_ advertisement: HeardAdvertisement, until end: SuspendingClock.Instant, silence: Duration) {
            (frames, name, services) = (advertisement.frames, advertisement.name, advertisement.services)
            (self.silence, self.end) = (silence, end)
        }

        func isRepeated(by advertisement: HeardAdvertisement, at now: SuspendingClock.Instant) -> Bool {
            now < end && frames == advertisement.frames && name == advertisement.name
                && services == advertisement.services
        }
    }

    private var lastHeard: SuspendingClock.Instant?
    /// The longest silence of the frames heard since the sensor arrived; `nil` before the first one.
    private var silence: Duration?
    private var filter = FrameFilter()
    private var repeated: Repeated?
    /// The last advertisement with frames of the profiles, or with any data if there was none; `nil` before the first.
    ///
    /// A repetition does not replace it, although its strength may differ.
    private(set) var lastAdvertisement: HeardAdvertisement?

    var isAway: Bool { lastHeard == nil }

    /// Records an advertisement and returns its new frames.
    mutating func record(
        _ advertisement: HeardAdvertisement,
        of sensor: Sensor,
        now: SuspendingClock.Instant
    ) -> [New] {
        lastHeard = now
        if let repeated, repeated.isRepeated(by: advertisement, at: now) {
            silence = max(silence ?? .zero, repeated.silence)
            return []
        }
        let payloads = filter.payloads(of: advertisement, sensor.frames, now: now)
        let isUseful = !payloads.isEmpty || silence == nil && !advertisement.frames.isEmpty
        if isUseful || lastAdvertisement == nil { lastAdvertisement = advertisement }
        if let longest = payloads.map({ sensor.frames[$0.payload.frame].silence }).max() {
            silence = max(silence ?? .zero, longest)
            repeated = filter.repetitionEnd(of: payloads.lazy.map(\.payload), sensor.frames).map {
                Repeated(advertisement, until: $0, silence: longest)
            }
        }
        return payloads.compactMap { payload, isNew in
            guard isNew, let binding = sensor.bindings[payload.frame] else { return nil }
            return (payload.octets, binding)
        }
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
