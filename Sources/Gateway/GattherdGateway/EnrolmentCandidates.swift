import GattherdHistory
import GattherdModel

/// The devices that rules have made and that were never ready, and who may become one.
///
/// Everybody in radio range can advertise what a rule asks for, under any number of addresses. So newcomers are few at
/// a time, come at a bounded rate, and have to become ready within some minutes; after that an address has to wait.
struct EnrolmentCandidates: Sendable {
    /// What is known of a newcomer when somebody looks.
    struct Look: Sendable {
        let device: String
        /// It is ready, or was.
        let wasReady: Bool
        /// A connection was tried, or nothing was heard of it during the trial.
        let hadItsChance: Bool
    }

    /// What has become of newcomers.
    struct Outcome: Equatable {
        var proven: [String] = []
        var failed: [String] = []
    }

    enum Admission: Sendable {
        case admitted
        /// Its address was never ready during an earlier trial.
        case paused
        /// There are as many newcomers as there may be, or too many came in a short time.
        case full
    }

    private struct Newcomer: Sendable {
        let rule: String
        let address: String
        let since: SuspendingClock.Instant
    }

    private struct Allowance: Sendable {
        var left = EnrolmentCandidates.burst
        var filled: SuspendingClock.Instant
    }

    /// EnrolmentCandidates of a rule at once.
    static let places = 50
    /// Within this time a newcomer must have been ready.
    static let trial = Duration.seconds(600)
    /// For this time an address that never became ready is not taken again.
    static let pause = Duration.seconds(3600)
    /// Devices that a rule makes at once, and the time after which it may make one more.
    static let burst = 100.0
    static let interval = Duration.seconds(6)
    /// Addresses that are remembered during their pause.
    static let remembered = 4096

    private var newcomers: [String: Newcomer] = [:]
    private var pauses: [String: SuspendingClock.Instant] = [:]
    private var allowances: [String: Allowance] = [:]

    /// Begins with those of an earlier run; each has its time anew.
    init(_ records: [EnrolledDevice], now: SuspendingClock.Instant) {
        for record in records where !record.isProven {
            newcomers[record.device] = Newcomer(rule: record.rule, address: record.address, since: now)
        }
    }

    var isEmpty: Bool { newcomers.isEmpty }

    func contains(_ device: String) -> Bool { newcomers[device] != nil }

    /// True while addresses have to wait that may be there all the time.
    var hasPauses: Bool { !pauses.isEmpty }

    /// Addresses that have to wait.
    var pauseCount: Int { pauses.count }

    /// Takes a device of the rule `rule`, or says why it has to wait.
    mutating func admit(
        _ device: String,
        at address: String,
        by rule: String,
        now: SuspendingClock.Instant
    ) -> Admission {
        if let end = pauses[address], now < end { return .paused }
        guard newcomers.values.count(where: { $0.rule == rule }) < Self.places, spend(rule, now) else { return .full }
        pauses[address] = nil
        newcomers[device] = Newcomer(rule: rule, address: address, since: now)
        return .admitted
    }

    /// Judges the newcomers; those that are not looked at are none any more.
    mutating func judge(_ looks: [Look], now: SuspendingClock.Instant) -> Outcome {
        var (outcome, rest): (Outcome, [String: Newcomer]) = (Outcome(), [:])
        for look in looks {
            guard let newcomer = newcomers[look.device] else { continue }
            if look.wasReady {
                outcome.proven.append(look.device)
            } else if look.hadItsChance, now - newcomer.since >= Self.trial {
                outcome.failed.append(look.device)
                pauses[newcomer.address] = now.advanced(by: Self.pause)
            } else {
                rest[look.device] = newcomer
            }
        }
        newcomers = rest
        forgetPauses(now)
        return outcome
    }

    private mutating func spend(_ rule: String, _ now: SuspendingClock.Instant) -> Bool {
        var allowance = allowances[rule] ?? Allowance(filled: now)
        defer { allowances[rule] = allowance }
        allowance.left = min(Self.burst, allowance.left + (now - allowance.filled) / Self.interval)
        allowance.filled = now
        guard allowance.left >= 1 else { return false }
        allowance.left -= 1
        return true
    }

    private mutating func forgetPauses(_ now: SuspendingClock.Instant) {
        pauses = pauses.filter { now < $0.value }
        guard pauses.count > Self.remembered else { return }
        let latest = pauses.sorted { $0.value > $1.value }.prefix(Self.remembered)
        pauses = Dictionary(uniqueKeysWithValues: latest.map { ($0.key, $0.value) })
    }
}
