import GattherdMachines
import GattherdModel
import GattherdOutputs

/// A journal, a receiver and a clock around one machine, in virtual time; every step is explicit.
struct BatchTestWorld {
    var machine: BatchMachine
    var now = Duration.zero
    var committed: [JournalEntry] = []
    /// The cursor in the journal.
    var stored: Int64 = 0
    /// The machine's unanswered requests.
    var requests: [BatchMachine.Effect] = []
    /// The entries of each call of the sink.
    var calls: [[Int64]] = []
    /// The entries that the receiver has, in the order of their arrival.
    var received: [Int64] = []
    /// The times of the accepted entries, in the order of their arrival.
    var receivedTimes: [Timestamp] = []
    /// The entries that the receiver refuses.
    var refused: Set<Int64> = []
    /// The entries that the receiver drops while it stores the others of their batch.
    var dropped: Set<Int64> = []
    /// The fault of the receiver; `nil` while it works.
    var fault: OutputFault?
    /// The time that the receiver needs for an entry.
    var pace = Duration.zero
    /// The time after which a slow call is ended by the sink or by its network; `nil`: the machine cancels it.
    var connectionLife: Duration?
    /// The number of entries above which the network cuts a call at once.
    var cutAbove: Int?
    var reports: [BatchMachine.Report] = []
    var saves = 0
    var isClosed = false
    var isFinished = false
    /// True if the next answer of the receiver is lost, although it commits.
    var losesAnswer = false
    /// The cursor of a receiver that keeps it.
    var receiverCursor: Int64 = 0
    /// The number of times that the receiver was asked for its cursor.
    var cursorLoads = 0
    /// The cursors to which the journal went.
    var rewinds: [Int64] = []
    var rewindFailures = 0
    /// The journal has no entries up to this number any more.
    var deleted: Int64 = 0
    /// The gaps that the receiver has recorded.
    var recorded: [JournalGap] = []
    private var isStarted = false

    private let options: BatchOptions
    private let keepsCursor: Bool

    init(_ options: BatchOptions = .warm, keepsCursor: Bool = false) {
        self.options = options
        self.keepsCursor = keepsCursor
        machine = BatchMachine(options: options, keepsCursor: keepsCursor, seed: 1)
    }

    /// Returns a world whose machine has started with `count` committed entries.
    static func started(committed count: Int = 0, _ options: BatchOptions = .warm) -> Self {
        var world = Self(options)
        world.commit(count)
        world.step(.start)
        world.step(.headMoved(Int64(count)))
        return world
    }

    /// Starts another run after a kill.
    mutating func restart() {
        machine = BatchMachine(options: options, keepsCursor: keepsCursor, seed: 2)
        (requests, isClosed, isFinished) = ([], false, false)
        step(.start)
        step(.headMoved(committed.last?.seq ?? 0))
    }

    mutating func commit(_ count: Int, bytes: Int = 10) {
        for _ in 0..<count { committed.append(.text(seq: (committed.last?.seq ?? 0) + 1, bytes: bytes)) }
        if isStarted, let head = committed.last?.seq { step(.headMoved(head)) }
    }

    /// Adds seconds to the times of all entries, as the journal does after a wrong clock was set.
    mutating func correctTimes(by seconds: Int64) {
        committed = committed.map { .text(seq: $0.seq, correction: seconds) }
        step(.timesCorrected)
    }

    mutating func step(_ event: BatchMachine.Event) {
        if event == .start { isStarted = true }
        for effect in machine.handle(event, at: now) { handle(effect) }
    }

    private mutating func handle(_ effect: BatchMachine.Effect) {
        switch effect {
        case .report(let report): reports.append(report)
        case .finish: isFinished = true
        case .write(let entries, _, _, _):
            calls.append(entries.map(\.seq))
            requests.append(effect)
        default: requests.append(effect)
        }
    }

    /// Answers one of the requests, which run at the same time.
    mutating func answerAny(using random: inout SplitMix64) {
        requests.swapAt(0, Int(random.next() % UInt64(requests.count)))
        answerOne()
    }

    /// Answers the oldest request as a journal and the receiver would.
    mutating func answerOne() {
        switch requests.removeFirst() {
        case .load: step(.cursorLoaded(stored))
        case .fetch(let after, let limit): step(.fetched(batch(after: after, limit: limit)))
        case .save(let seq):
            (stored, saves) = (seq, saves + 1)
            step(.saved(seq))
        case .write(let entries, let after, let through, let ticket):
            guard pace * entries.count < callLimit else { return timeOut(ticket) }
            now += pace * entries.count
            step(.written(ticket: ticket, answer(write(entries, after: after, through: through))))
        case .loadReceiverCursor(let ticket):
            cursorLoads += 1
            step(fault.map { .written(ticket: ticket, $0) } ?? .receiverCursorLoaded(ticket: ticket, receiverCursor))
        case .record(let gap, let ticket):
            step(.written(ticket: ticket, answer(record(gap))))
        case .rewind(let seq): rewind(to: seq)
        case .close:
            isClosed = true
            step(.closed)
        case .cancelWrite, .report, .finish: break
        }
    }

    func batch(after seq: Int64, limit: Int) -> JournalBatch {
        let lost = min(deleted, committed.last?.seq ?? 0)
        guard lost <= seq else {
            return JournalBatch(missing: JournalGap(after: seq, through: lost, reason: "deleted"))
        }
        let entries = Array(committed.dropFirst(Int(seq)).prefix(limit))
        let through = entries.count < limit ? committed.last?.seq ?? 0 : entries.last?.seq ?? 0
        return JournalBatch(entries, through: through)
    }

    private var callLimit: Duration { min(connectionLife ?? .seconds(3600), options.writeTimeout) }

    private mutating func timeOut(_ ticket: Int) {
        now += callLimit
        step(.tick)
        step(.written(ticket: ticket, OutputFault(.unavailable, "timeout")))
    }

    private mutating func rewind(to seq: Int64) {
        guard rewindFailures == 0 else {
            rewindFailures -= 1
            return step(.journalFailed(.rewind))
        }
        (stored, rewinds) = (seq, rewinds + [seq])
        step(.rewound)
    }

    private mutating func write(_ entries: [JournalEntry], after: Int64, through: Int64) -> OutputFault? {
        if let fault { return fault }
        if let cutAbove, entries.count > cutAbove { return OutputFault(.unavailable, "connection reset") }
        if entries.contains(where: { refused.contains($0.seq) }) { return OutputFault(.refused, "bad") }
        if keepsCursor {
            guard after == receiverCursor else { return OutputFault(.unavailable, "another cursor") }
            receiverCursor = through
        }
        received += entries.map(\.seq).filter { !dropped.contains($0) }
        receivedTimes += entries.compactMap(\.time)
        let lost = entries.count { dropped.contains($0.seq) }
        return lost > 0 ? OutputFault(.refused, "too old", lost: lost) : nil
    }

    private mutating func answer(_ fault: OutputFault?) -> OutputFault? {
        defer { losesAnswer = false }
        return losesAnswer ? OutputFault(.unavailable, "connection reset") : fault
    }

    private mutating func record(_ gap: JournalGap) -> OutputFault? {
        if let fault { return fault }
        guard gap.after == receiverCursor else { return OutputFault(.unavailable, "another cursor") }
        (recorded, receiverCursor) = (recorded + [gap], gap.through)
        return nil
    }

    /// The numbers that the receiver has, or has recorded as missing, in order.
    var known: [Int64] {
        (received + recorded.flatMap { Array($0.after + 1...$0.through) }).sorted()
    }

    /// Puts the receiver back to an earlier cursor.
    mutating func restore(to seq: Int64) {
        receiverCursor = seq
        received.removeAll { $0 > seq }
        recorded = recorded.filter { $0.after < seq }.map { gap in
            JournalGap(after: gap.after, through: min(gap.through, seq), reason: gap.reason)
        }
    }

    mutating func answerAll() {
        while !requests.isEmpty { answerOne() }
    }

    /// Advances time to the machine's next deadline; false without one.
    @discardableResult
    mutating func wait() -> Bool {
        guard let deadline = machine.deadline else { return false }
        now = max(now, deadline)
        step(.tick)
        return true
    }

    /// Answers and waits until nothing is left to do, or for `limit`.
    mutating func runUntilIdle(limit: Duration = .seconds(3600)) {
        let end = now + limit
        repeat { answerAll() } while (machine.deadline ?? end) < end && wait()
        answerAll()
    }
}

extension BatchOptions {
    /// The defaults, but the first batch may be as large as all others.
    static var warm: Self {
        var options = Self()
        options.firstEntries = options.entries
        return options
    }
}

extension JournalEntry {
    /// A reading with a text of `bytes` bytes; `correction` seconds were added to its time.
    static func text(seq: Int64, bytes: Int = 10, correction: Int64 = 0) -> JournalEntry {
        let sample = Sample(metric: 0, value: .text(String(repeating: "x", count: bytes)))
        return .reading(
            JournalReading(
                seq: seq,
                stream: .text,
                time: Timestamp(microseconds: (seq + correction) * 1_000_000),
                source: .notify,
                samples: [sample][...]
            )
        )
    }
}

extension StreamDefinition {
    static let text = StreamDefinition(
        device: "strap",
        profile: "test",
        stream: "text",
        metrics: [MetricDescriptor(name: "text")]
    )
}
