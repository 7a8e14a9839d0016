import GattherdHistory
import GattherdModel

/// For how long nobody has heard of each device while somebody listened.
///
/// Counted by a monotonic clock while the daemon runs: neither a clock that is set, nor a gateway that was off or without
/// an adapter makes a device forgotten.
struct LastSeenTracker: Sendable {
    /// What is known of a device when somebody looks.
    struct Look: Sendable {
        let device: String
        /// It is ready.
        let isHere: Bool
        /// When it was last heard, which is only compared.
        let heard: Timestamp?
    }

    private struct Silence: Sendable {
        var span = Duration.zero
        var heard: Timestamp?
    }

    private var silences: [String: Silence] = [:]
    private var lastLook: SuspendingClock.Instant

    /// Begins with what earlier runs have counted.
    init(_ records: [EnrolledDevice], now: SuspendingClock.Instant) {
        lastLook = now
        for record in records { silences[record.device] = Silence(span: record.silence) }
    }

    subscript(device: String) -> Duration { silences[device]?.span ?? .zero }

    /// A device is new, whatever was known of one with its name.
    mutating func begin(_ device: String) { silences[device] = nil }

    /// Counts the time since the last look for those who were not heard meanwhile, and forgets who is not looked at.
    mutating func note(_ looks: [Look], isListening: Bool, now: SuspendingClock.Instant) {
        let span = now - lastLook
        lastLook = now
        let before = silences
        silences = [:]
        for look in looks {
            var silence = before[look.device] ?? Silence()
            let isHeard = look.isHere || look.heard != nil && look.heard != silence.heard
            silence.span = isHeard ? .zero : isListening ? silence.span + span : silence.span
            silence.heard = look.heard
            silences[look.device] = silence
        }
    }
}
