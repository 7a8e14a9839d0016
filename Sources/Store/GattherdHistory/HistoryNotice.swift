public import GattherdModel

/// A change of the history's state that is published as an event.
public enum HistoryNotice: Hashable, Sendable {
    /// Undelivered readings were dropped, because the file would have grown too large.
    case backlogDropped(readings: Int)
    /// An output has skipped undelivered readings with these numbers, because too many waited for it.
    case skipped(output: String, readings: Int, after: Int64, through: Int64)
    /// The file cannot be written; readings are held in memory.
    case failing(error: String)
    /// Readings are delivered from memory from now on, and not stored.
    case delivering
    /// The file can be written again; these numbers of readings and rejects were not stored.
    case recovered(unstored: Int, rejects: Int)
    /// The damaged file was moved to another path, and a new one was created.
    case movedAside(to: String, error: String)
    /// The file was missing or empty although it had readings before; a new one was created.
    case lost(path: String)
    /// The receiver of an output has entries up to this number that the file never had, so a new epoch was started.
    case olderCopy(output: String, through: Int64)
    /// The wall clock was set: readings with these numbers, published with other times, were moved by this much.
    case restamped(after: Int64, through: Int64, by: Duration)

    /// The wall clock is in doubt now, or, without a doubt, trusted again.
    case clock(ClockDoubt?)

    /// The kind of the event: `output` for a gap of an output, else `history`.
    public var kind: String {
        if case .skipped = self { "output" } else { "history" }
    }

    /// The members of the event.
    public var members: KeyValuePairs<String, SampleValue?> {
        switch self {
        case .backlogDropped(let readings): ["state": .text("backlog_dropped"), "readings": .integer(Int64(readings))]
        case .skipped(let output, let readings, let after, let through):
            [
                "state": .text("skipped"), "output": .text(output), "entries": .integer(Int64(readings)),
                "after": .integer(after), "through": .integer(through),
                "reason": .text("more than its longest backlog waited"),
            ]
        case .failing(let error): ["state": .text("failing"), "error": .text(error)]
        case .delivering: ["state": .text("delivering_unstored")]
        case .recovered(let readings, let rejects):
            [
                "state": .text("recovered"), "unstored": .integer(Int64(readings)),
                "unstored_rejects": .integer(Int64(rejects)),
            ]
        case .movedAside(let path, let error):
            ["state": .text("moved_aside"), "path": .text(path), "error": .text(error)]
        case .lost(let path): ["state": .text("lost"), "path": .text(path)]
        case .olderCopy(let output, let seq):
            ["state": .text("older_copy"), "output": .text(output), "through": .integer(seq)]
        case .restamped(let first, let last, let shift):
            [
                "state": .text("restamped"), "after": .integer(first), "through": .integer(last),
                "seconds": .real(shift / .seconds(1)),
            ]
        case .clock(let doubt):
            [
                "state": .text(doubt == nil ? "clock_trusted" : "clock_doubted"),
                "ahead": doubt?.ahead.map { .real($0 / .seconds(1)) }, "detail": doubt.map { .text($0.text) },
            ]
        }
    }
}

/// The state of history, for status output.
public struct HistoryStatus: Hashable, Sendable {
    /// The database's size in bytes, without the WAL.
    public var size: Int64 = 0
    /// The number of readings dropped before delivery, since the start.
    public var undelivered = 0
    /// The number of readings that each output has skipped, because too many waited for it, since the start.
    public var skipped: [String: UInt64] = [:]
    /// The numbers that no entry has, so that they do not count as waiting.
    package var unused = UnusedNumbers()
    /// The number of readings that were not stored, only offered for delivery from memory, since the start.
    public var unstored = 0
    /// True if this run created a new file in place of a missing or empty one.
    public var isNewAfterLoss = false
    /// The reason why the file cannot be written; `nil` while it can.
    public var fault: StoreFault?
    /// The reason why rows are not deleted by the wall clock, or only slowly; `nil` while it is trusted.
    public var clockDoubt: ClockDoubt?
}
