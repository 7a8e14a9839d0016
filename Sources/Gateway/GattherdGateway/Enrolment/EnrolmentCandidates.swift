import GattherdHistory
import GattherdModel

/// The devices that rules have enrolled and that were never ready.
///
/// Any transmitter in radio range can advertise matching data, under any number of addresses. So candidates are few at
/// a time, have a bounded rate, and must become ready within ``trial``. The address of one that fails pauses.
struct EnrolmentCandidates: Sendable {
    /// The state of a candidate at a check.
    struct Observation: Sendable {
        let device: String
        /// True if the device is or was ready.
        let wasReady: Bool
        /// True if a connection was tried, or the device was not seen during the trial.
        let wasTried: Bool
        /// True if another gateway owns the device, so that this one cannot try it.
        var isElsewhere = false
    }

    /// The result of a check.
    struct Outcome: Equatable {
        var proven: [String] = []
        var failed: [String] = []
    }

    enum Admission: Sendable {
        case admitted
        /// The address failed an earlier trial.
        case paused
        /// The rule has the maximum number of candidates, or has enrolled too many in a short time.
        case full
    }

    private struct Candidate: Sendable {
        let rule: String
        let address: String
        /// The time of the admission, or of the last check.
        var checkedAt: SuspendingClock.Instant
        /// The time for which this gateway could connect the device.
        var spent = Duration.zero
        /// True if another gateway owned the device at the last check.
        var isElsewhere = false

        /// Counts the time since the last check, unless another gateway owned the device at either end.
        mutating func record(isElsewhere: Bool, now: SuspendingClock.Instant) {
            if !isElsewhere, !self.isElsewhere { spent += now - checkedAt }
            (self.isElsewhere, checkedAt) = (isElsewhere, now)
        }
    }

    private struct Allowance: Sendable {
        var left = EnrolmentCandidates.burst
        var filled: SuspendingClock.Instant
    }

    /// The maximum number of candidates of a rule at once.
    static let places = 50
    /// The time within which a candidate must have been ready, apart from that in which another gateway owns it.
    static let trial = Duration.seconds(600)
    /// The time for which an address that failed is not admitted again.
    static let pause = Duration.seconds(3600)
    /// The maximum number of devices that a rule enrols at once.
    static let burst = 100.0
    /// The time after which a rule may make one more device.
    static let interval = Duration.seconds(6)
    /// The maximum number of addresses that pause; later ones replace earlier ones.
    static let maximumPauses = 4096

    private var candidates: [String: Candidate] = [:]
    private var pauses: [String: SuspendingClock.Instant] = [:]
    private var allowances: [String: Allowance] = [:]

    /// Starts with the candidates of an earlier run; the trial of each starts again.
    init(_ records: [EnrolledDevice], now: SuspendingClock.Instant) { add(records, now: now) }

    /// Adds the candidates of an earlier run.
    mutating func add(_ records: [EnrolledDevice], now: SuspendingClock.Instant) {
        for record in records where !record.isProven {
            candidates[record.device] = Candidate(rule: record.rule, address: record.address, checkedAt: now)
        }
    }

    /// Ends the trials of devices that were ready in an earlier run, at the same address.
    mutating func removeProven(by records: [EnrolledDevice]) {
        for record in records where record.isProven && candidates[record.device]?.address == record.address {
            candidates[record.device] = nil
        }
    }

    /// True if no trial is under way.
    var isIdle: Bool { candidates.values.allSatisfy(\.isElsewhere) }

    func contains(_ device: String) -> Bool { candidates[device] != nil }

    /// The number of addresses that pause; their peripherals must be offered again.
    var pauseCount: Int { pauses.count }

    /// Admits a device of the rule `rule`, or returns the reason why not.
    mutating func admit(
        _ device: String,
        at address: String,
        by rule: String,
        now: SuspendingClock.Instant
    ) -> Admission {
        if let end = pauses[address], now < end { return .paused }
        let count = candidates.values.count { $0.rule == rule && !$0.isElsewhere }
        guard count < Self.places, spend(rule, now) else { return .full }
        pauses[address] = nil
        candidates[device] = Candidate(rule: rule, address: address, checkedAt: now)
        return .admitted
    }

    /// Checks the candidates; drops those without observation.
    mutating func check(_ observations: [Observation], now: SuspendingClock.Instant) -> Outcome {
        var (outcome, rest): (Outcome, [String: Candidate]) = (Outcome(), [:])
        for observation in observations {
            guard var candidate = candidates[observation.device] else { continue }
            candidate.record(isElsewhere: observation.isElsewhere, now: now)
            if observation.wasReady {
                outcome.proven.append(observation.device)
            } else if observation.wasTried, !observation.isElsewhere, candidate.spent >= Self.trial {
                outcome.failed.append(observation.device)
                pauses[candidate.address] = now.advanced(by: Self.pause)
            } else {
                rest[observation.device] = candidate
            }
        }
        candidates = rest
        dropPauses(now)
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

    private mutating func dropPauses(_ now: SuspendingClock.Instant) {
        pauses = pauses.filter { now < $0.value }
        guard pauses.count > Self.maximumPauses else { return }
        let latest = pauses.sorted { $0.value > $1.value }.prefix(Self.maximumPauses)
        pauses = Dictionary(uniqueKeysWithValues: latest.map { ($0.key, $0.value) })
    }
}
