import GattherdLog
public import GattherdModel
import GattherdSync

/// Logs and records changes of one output: one line when it fails, one when it works again.
final class OutputReporter: Sendable {
    private struct Limits: Sendable {
        var skippedAt: SuspendingClock.Instant?
        /// The entries skipped since the last report about them.
        var skipped: Int64 = 0
        var journalFailedAt: SuspendingClock.Instant?
        var gaps = GapReports()
    }

    /// The shortest time between two reports about skipped entries, or about the journal.
    private static let pause = Duration.seconds(60)

    private let name: String
    private let target: String
    private let log: Log
    private let record: OutputContext.EventHandler
    private let limits = Locked(Limits())

    init(name: String, target: String, log: Log, record: @escaping OutputContext.EventHandler) {
        (self.name, self.target, self.record) = (name, target, record)
        self.log = log.with(LogField("output", name))
    }

    func handle(_ report: BatchMachine.Report) {
        switch report {
        case .connected: connected()
        case .failed(let fault, let pause): failed(fault, retryAfter: pause)
        case .skipped(let entry, let fault): skipped(entry, fault)
        case .lost(let count, let first, let fault): skipped(first, fault, count: count)
        case .missing(let gap): missing(gap)
        }
    }

    private func connected() {
        record(["output": .text(name), "state": .text("connected"), "at": .text(target)])
        log(.notice, "output connected", [LogField("output.target", target)])
    }

    private func failed(_ fault: OutputFault, retryAfter pause: Duration) {
        record(["output": .text(name), "state": .text(fault.kind.rawValue), "error": .text(fault.detail)])
        log(
            fault.kind == .unavailable ? .warning : .error,
            "an output accepts no entries, which wait",
            [LogField("output.error", fault.detail), LogField("retry.after", pause)]
        )
    }

    /// Reports a gap, together with earlier gaps that exceeded the report limit.
    private func missing(_ found: JournalGap) {
        if let gap = limits.withLock({ $0.gaps.add(found, at: SuspendingClock.now) }) { report(gap) }
    }

    /// Reports the gap that exceeded the report limit once it is due; at the end it is.
    func reportDueGap(isLast: Bool = false) {
        if let gap = limits.withLock({ $0.gaps.due(at: SuspendingClock.now, isLast: isLast) }) { report(gap) }
    }

    private func report(_ gap: JournalGap) {
        record([
            "output": .text(name), "state": .text("gap"), "after": .integer(gap.after),
            "through": .integer(gap.through), "reason": .text(gap.reason),
        ])
        log(
            .warning,
            "an output needs entries that history no longer has",
            [LogField("after", gap.after), LogField("through", gap.through), LogField("reason", gap.reason)]
        )
    }

    private func skipped(_ entry: JournalEntry, _ fault: OutputFault, count: Int = 1) {
        guard let count = countSkipped(count) else { return }
        let members: KeyValuePairs<String, SampleValue?> = [
            "output": .text(name), "state": .text("skipped"), "count": .integer(count), "seq": .integer(entry.seq),
            "device": entry.device.map { .text($0) }, "error": .text(fault.detail),
        ]
        // An event about a refused event of this kind could be refused as well, forever.
        if !entry.isAboutOutputs { record(members) }
        log(
            .error,
            "an output refuses entries, which are skipped",
            [LogField("seq", entry.seq), LogField("skipped", count), LogField("output.error", fault.detail)]
        )
    }

    /// Returns the number of entries to report now; `nil` if they are reported later.
    private func countSkipped(_ count: Int) -> Int64? {
        let now = SuspendingClock.now
        return limits.withLock { limits in
            limits.skipped += Int64(count)
            if let last = limits.skippedAt, now < last + Self.pause { return nil }
            defer { (limits.skippedAt, limits.skipped) = (now, 0) }
            return limits.skipped
        }
    }

    func journalFailed(_ operation: BatchMachine.JournalOperation, _ fault: StoreFault) {
        guard limits.withLock({ Self.isDue(&$0.journalFailedAt) }) else { return }
        let fields = [LogField("journal.operation", operation.rawValue), LogField("journal.error", fault.detail)]
        log(.warning, "the journal cannot be read or saved; retrying", fields)
    }

    /// True if the last report of a kind was long ago; then the next one is due after a pause.
    private static func isDue(_ last: inout SuspendingClock.Instant?) -> Bool {
        let now = SuspendingClock.now
        if let last, now < last + pause { return false }
        last = now
        return true
    }
}

extension JournalEntry {
    /// The device; `nil` for an entry about the gateway.
    public var device: String? {
        switch self {
        case .reading(let reading): reading.stream.device
        case .event(let event, _): event.device
        case .reject(let reject, _): reject.device
        case .correction: nil
        }
    }

    fileprivate var isAboutOutputs: Bool {
        if case .event(let event, _) = self { event.kind == "output" } else { false }
    }
}
