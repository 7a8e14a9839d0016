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
    private var assembly = FrameAssembly()

    var isAway: Bool { lastHeard == nil }

    /// Records an advertisement and returns its new frames.
    mutating func record(
        _ advertisement: HeardAdvertisement,
        of sensor: Sensor,
        now: SuspendingClock.Instant
    ) -> [New] {
        lastHeard = now
        var new: [New] = []
        for payload in assembly.payloads(of: advertisement, sensor, now: now) {
            guard let binding = sensor.bindings[payload.frame],
                isNew(payload.octets, at: payload.frame, binding, now)
            else { continue }
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
        return now - lastSent.time >= binding.profile.advertisements[binding.characteristic].renewal
    }

    /// Returns the remaining time until the sensor counts as away; `nil` if it is away from now on.
    mutating func timeLeft(_ silence: Duration, now: SuspendingClock.Instant) -> Duration? {
        guard let heard = lastHeard, heard + silence > now else {
            lastHeard = nil
            assembly = FrameAssembly()
            return nil
        }
        return heard + silence - now
    }
}
