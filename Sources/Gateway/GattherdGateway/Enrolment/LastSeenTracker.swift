import GattherdHistory
import GattherdModel

/// The time since each device was last seen, as far as the gateway listened.
///
/// The time is counted by a monotonic clock while the daemon runs. A clock step, a gateway that was off, and a missing
/// adapter do not count.
struct LastSeenTracker: Sendable {
    /// The state of a device at a check.
    struct Observation: Sendable {
        let device: String
        /// True if the device has a link, here or at another gateway.
        let isReady: Bool
        /// The time of the last sighting; only compared with the previous one.
        let heard: Timestamp?
    }

    private struct Absence: Sendable {
        var span = Duration.zero
        var heard: Timestamp?
    }

    private var absences: [String: Absence] = [:]
    private var lastCheck: SuspendingClock.Instant

    /// Starts with the times of earlier runs.
    init(_ records: [EnrolledDevice], now: SuspendingClock.Instant) {
        lastCheck = now
        add(records)
    }

    /// Adds devices with their times of earlier runs.
    mutating func add(_ records: [EnrolledDevice]) {
        for record in records { absences[record.device] = Absence(span: record.silence) }
    }

    subscript(device: String) -> Duration { absences[device]?.span ?? .zero }

    /// Starts from zero for a new device.
    mutating func reset(_ device: String) { absences[device] = nil }

    /// Adds the time since the last check to the devices that were not seen since; drops devices without observation.
    mutating func record(_ observations: [Observation], isListening: Bool, now: SuspendingClock.Instant) {
        let span = now - lastCheck
        lastCheck = now
        let before = absences
        absences = [:]
        for observation in observations {
            var absence = before[observation.device] ?? Absence()
            let isNew = observation.heard != nil && observation.heard != absence.heard
            let isSeen = observation.isReady || isNew
            absence.span = isSeen ? .zero : isListening ? absence.span + span : absence.span
            absence.heard = observation.heard
            absences[observation.device] = absence
        }
    }
}
