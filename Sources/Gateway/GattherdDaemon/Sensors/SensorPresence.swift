import GattherdBluetooth
import GattherdModel

/// The presence of one sensor and its last frames.
struct SensorPresence: Sendable {
    /// New bytes and their destination.
    typealias New = (octets: [UInt8], binding: StreamBinding)

    private struct SentFrame: Sendable {
        let octets: [UInt8]
        let time: SuspendingClock.Instant
    }

    private var lastHeard: SuspendingClock.Instant?
    private var lastSent: [Sensor.Frame: SentFrame] = [:]

    var isAway: Bool { lastHeard == nil }

    /// Records an advertisement and returns its new frames.
    mutating func record(
        _ advertisement: HeardAdvertisement,
        of sensor: Sensor,
        now: SuspendingClock.Instant
    ) -> [New] {
        lastHeard = now
        var new: [New] = []
        for frame in advertisement.frames {
            for place in sensor.places(of: frame, name: advertisement.name) {
                guard let binding = sensor.bindings[place], isNew(frame.octets, at: place, binding, now) else {
                    continue
                }
                lastSent[place] = SentFrame(octets: frame.octets, time: now)
                new.append((frame.octets, binding))
            }
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
        return now - lastSent.time >= binding.profile.advertisements[binding.characteristic].renewal
    }

    /// Returns the remaining time until the sensor counts as away; `nil` if it is away from now on.
    mutating func timeLeft(_ silence: Duration, now: SuspendingClock.Instant) -> Duration? {
        guard let heard = lastHeard, heard + silence > now else {
            lastHeard = nil
            return nil
        }
        return heard + silence - now
    }
}
