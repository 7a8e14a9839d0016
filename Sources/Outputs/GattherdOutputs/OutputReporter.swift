import GattherdLog
public import GattherdModel
import GattherdSync

/// Logs and records changes of one output: one line when it fails, one when it works again.
final class OutputReporter: Sendable {
    private struct Limits: Sendable {
        var skips = SkipReports<(entry: JournalEntry, detail: String)>()
        var journalFailedAt: SuspendingClock.Instant?
        var gaps = GapReports()
    }

    /// The shortest time between two reports about the journal.
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
        case .skipped(let entry, let fault): skipped(1, entry, fault)
        case .lost(let count, let first, let fault): skipped(count, first, fault)
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

    private func skipped(_ count: Int, _ entry: JournalEntry, _ fault: OutputFault) {
        limits.withLock { $0.skips.add(count, (entry, fault.detail), isPreferred: !entry.isAboutOutputs) }
    }

    /// Reports a gap, together with earlier gaps that exceeded the report limit.
    private func missing(_ found: JournalGap) {
        if let gap = limits.withLock({ $0.gaps.add(found, at: SuspendingClock.now) }) { report(gap) }
    }

    /// Reports skipped entries, and a gap that exceeded the report limit, if they are due; if `isLast`, they are.
    ///
    /// Must be called repeatedly, because no further skip or gap may follow that would report them.
    func reportDue(isLast: Bool = false) {
        let now = SuspendingClock.now
        if let gap = limits.withLock({ $0.gaps.due(at: now, isLast: isLast) }) { report(gap) }
        guard let skips = limits.withLock({ $0.skips.due(at: now, isLast: isLast) }) else { return }
        report(skips.count, skips.subject.entry, skips.subject.detail)
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

    private func report(_ count: Int64, _ entry: JournalEntry, _ detail: String) {
        let members: KeyValuePairs<String, SampleValue?> = [
            "output": .text(name), "state": .text("skipped"), "count": .integer(count),
            "seq": .integer(entry.seq), "device": entry.device.map { .text($0) }, "error": .text(detail),
        ]
        // An event about a refused event of this kind could be refused as well, forever.
        if !entry.isAboutOutputs { record(members) }
        log(
            .error,
            "an output refuses entries, which are skipped",
            [LogField("seq", entry.seq), LogField("skipped", count), LogField("output.error", detail)]
        )
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
