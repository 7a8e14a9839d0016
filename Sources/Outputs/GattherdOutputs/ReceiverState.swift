import GattherdMachines

/// The state of a receiver after its answers so far, and the pause before the next attempt.
struct ReceiverState: Sendable {
    private enum Link: Hashable {
        case unknown
        case connected
        case failed(OutputFault.Kind)
    }

    private let options: BatchOptions
    private var random: SplitMix64
    private var link = Link.unknown
    private var failures = 0
    /// The fault or the refusal since the last success.
    private(set) var fault: OutputFault?
    /// The time of the next attempt after a failure; `nil` once it has started.
    private(set) var retryAt: Duration?

    var isConnected: Bool { link == .connected }
    var hasFailed: Bool { if case .failed = link { true } else { false } }

    init(_ options: BatchOptions, seed: UInt64) {
        self.options = options
        random = SplitMix64(seed: seed)
    }

    mutating func startAttempt() { retryAt = nil }

    /// Records that a batch was accepted.
    mutating func accepted() -> [BatchMachine.Effect] {
        (failures, fault, retryAt) = (0, nil, nil)
        return connect()
    }

    /// Records that a batch was refused by a receiver that works.
    mutating func refused(_ fault: OutputFault) -> [BatchMachine.Effect] {
        // The fault of a receiver that refuses everything stays until it accepts something.
        guard !hasFailed || self.fault?.kind == .unavailable else { return [] }
        self.fault = fault
        return connect()
    }

    /// Records a failure and starts the pause, which grows with each.
    mutating func failed(_ fault: OutputFault, at now: Duration) -> [BatchMachine.Effect] {
        let isNew = link != .failed(fault.kind)
        (link, self.fault) = (.failed(fault.kind), fault)
        failures = min(failures + 1, 64)
        let backoff = fault.kind == .unavailable ? options.backoff : options.misconfiguredBackoff
        let asked = min(fault.retryAfter ?? .zero, options.longestPause)
        let longest = fault.retryWithin ?? options.longestPause
        let pause = min(max(backoff.delay(after: failures, using: &random), asked), longest)
        retryAt = now + pause
        return isNew ? [.report(.failed(fault, retryAfter: pause))] : []
    }

    private mutating func connect() -> [BatchMachine.Effect] {
        guard link != .connected else { return [] }
        link = .connected
        return [.report(.connected)]
    }
}
