import GattherdBluetooth
import GattherdModel

/// The presence of one sensor and its last frames.
struct SensorPresence: Sendable {
    /// New bytes and their destination.
    typealias New = (octets: [UInt8], binding: StreamBinding)

    /// The result of a check.
    enum Status: Hashable, Sendable {
        /// The sensor counts as away after this time without an advertisement.
        case present(timeLeft: Duration)
        /// Nothing was heard for this time.
        case away(silence: Duration)
    }

    private struct SentFrame: Sendable {
        let octets: [UInt8]
        let time: SuspendingClock.Instant
    }

    private var lastHeard: SuspendingClock.Instant?
    /// The longest silence of the frames heard since the sensor arrived; `nil` before the first one.
    private var silence: Duration?
    private var lastSent: [Sensor.Frame: SentFrame] = [:]
    private var assembly = FrameAssembly()
    /// The last advertisement; `nil` before the first.
    private(set) var lastAdvertisement: HeardAdvertisement?

    var isAway: Bool { lastHeard == nil }

    /// Records an advertisement and returns its new frames.
    mutating func record(
        _ advertisement: HeardAdvertisement,
        of sensor: Sensor,
        now: SuspendingClock.Instant
    ) -> [New] {
        lastHeard = now
        lastAdvertisement = advertisement
        var new: [New] = []
        for payload in assembly.payloads(of: advertisement, sensor, now: now) {
            guard let binding = sensor.bindings[payload.frame] else { continue }
            silence = max(silence ?? .zero, binding.advertisement.silence)
            guard isNew(payload.octets, at: payload.frame, binding, now) else { continue }
            lastSent[payload.frame] = SentFrame(octets: payload.octets, time: now)
            new.append((payload.octets, binding))
        }
        return new
    }

    private func isNew(
        _ octets: [UInt8],
        at place: Sensor.Frame,
        _ binding: StreamBinding,
        _ now: SuspendingClock.Instant
    ) -> Bool {
        guard let lastSent = lastSent[place], lastSent.octets == octets else { return true }
        return now - lastSent.time >= binding.advertisement.renewal
    }

    /// Checks whether the sensor is still heard; it counts as away from now on if not.
    ///
    /// The limit never falls while the sensor is present, so that the next check is early enough.
    mutating func check(_ sensor: Sensor, now: SuspendingClock.Instant) -> Status {
        let limit = sensor.silence ?? silence ?? sensor.shortestSilence
        guard let heard = lastHeard, heard + limit > now else {
            (lastHeard, silence, assembly) = (nil, nil, FrameAssembly())
            return .away(silence: limit)
        }
        return .present(timeLeft: heard + limit - now)
    }
}

extension StreamBinding {
    /// The frame of a sensor's stream.
    fileprivate var advertisement: AdvertisementDescriptor { profile.advertisements[characteristic] }
}
