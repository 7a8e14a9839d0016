import GattherdMachines
import GattherdModel
import GattherdOutputs
import Testing

@Suite struct BatchMachineTests {
    @Test func `entries that history has lost are reported, and the cursor passes them`() {
        var world = BatchTestWorld.started(committed: 100)
        world.deleted = 40
        world.runUntilIdle()
        #expect(world.received == Array(41...100) && world.stored == 100)
        #expect(world.reports.contains(.missing(JournalGap(after: 0, through: 40, reason: "deleted"))))
    }

    @Test func `many gaps are joined, and none is left out`() {
        var (reports, found) = (GapReports(), [JournalGap]())
        let start = SuspendingClock.now
        for number in 0..<100 as Range<Int64> {
            let gap = JournalGap(after: 2 * number, through: 2 * number + 1, reason: "deleted")
            found += [reports.add(gap, at: start + .seconds(number == 99 ? 61 : 1))].compactMap(\.self)
        }
        #expect(found.count == GapReports.burst + 1)
        #expect(found.last == JournalGap(after: 40, through: 199, reason: "deleted"))
    }

    @Test func `joined gaps are reported after a minute or at the end, although no other gap follows`() {
        var reports = GapReports()
        let start = SuspendingClock.now
        for number in 0..<22 as Range<Int64> {
            let gap = JournalGap(after: 2 * number, through: 2 * number + 1, reason: "deleted")
            _ = reports.add(gap, at: start)
        }
        var atEnd = reports
        #expect(reports.due(at: start + .seconds(59)) == nil)
        #expect(reports.due(at: start + .seconds(60)) == JournalGap(after: 40, through: 43, reason: "deleted"))
        #expect(reports.due(at: start + .seconds(120), isLast: true) == nil)
        #expect(atEnd.due(at: start, isLast: true) == JournalGap(after: 40, through: 43, reason: "deleted"))
    }

    typealias World = BatchTestWorld

    static let down = OutputFault(.unavailable, "down")

    @Test func `entries gather for the interval and go in one batch`() {
        var world = World.started()
        world.answerAll()
        world.commit(1)
        world.now += .milliseconds(500)
        world.commit(2)
        world.answerAll()
        #expect(world.calls.isEmpty)
        world.runUntilIdle()
        #expect(world.calls == [[1, 2, 3]])
        #expect(world.stored == 3)
    }

    @Test func `a full batch does not wait`() {
        var options = BatchOptions()
        (options.entries, options.interval) = (4, .seconds(60))
        var world = World.started(options)
        world.answerAll()
        world.commit(9)
        world.answerAll()
        #expect(world.calls == [[1, 2, 3, 4], [5, 6, 7, 8]])
        #expect(world.now == .zero)
        world.runUntilIdle()
        #expect(world.received == Array(1...9))
    }

    @Test func `while entries come all the time, only those after the last accepted batch wait`() {
        var options = BatchOptions()
        (options.entries, options.interval) = (1, .seconds(60))
        var world = World.started(options)
        world.answerAll()
        for second in 1...5 {
            world.now = .seconds(second)
            world.commit(1)
            while world.calls.count < second, !world.requests.isEmpty { world.answerOne() }
            #expect(world.machine.output.backlog == 1)
        }
        #expect(world.machine.output.completeUntil == .seconds(4))
    }

    @Test func `a batch that is full in bytes does not wait`() {
        var options = BatchOptions()
        (options.bytes, options.interval) = (1000, .seconds(60))
        var world = World.started(committed: 1000, options)
        world.answerAll()
        #expect(world.calls.allSatisfy { $0.count <= 10 && !$0.isEmpty })
        #expect(world.received.count > 900)
    }

    @Test func `a backlog is delivered in order and once, in full batches`() {
        var world = World.started(committed: 10_000)
        world.runUntilIdle()
        #expect(world.received == Array(1...10_000))
        #expect(world.calls.count == 10)
        #expect(world.machine.output.backlog == 0 && world.machine.output.delivered == 10_000)
    }

    @Test func `the cursor moves only after the receiver has the entries`() {
        var world = World.started(committed: 1000)
        while world.calls.isEmpty { world.answerOne() }
        #expect(world.machine.output.cursor == 0)
        world.runUntilIdle()
        #expect(world.machine.output.cursor == 1000)
    }

    @Test func `the memory of a dead output is bounded`() {
        var world = World.started(committed: 100)
        world.fault = Self.down
        world.answerAll()
        for _ in 0..<20 {
            world.commit(1000, bytes: 2000)
            world.runUntilIdle(limit: .seconds(10))
        }
        let memory = world.machine.output
        #expect(memory.fetched <= 2000 && memory.fetchedBytes <= 3 << 20, "\(memory.fetched) \(memory.fetchedBytes)")
        world.fault = nil
        world.runUntilIdle()
        #expect(world.received == Array(1...20_100))
    }

    @Test func `a kill repeats at most what was delivered since the last save`() {
        var options = BatchOptions()
        options.interval = .zero
        var world = World.started(options)
        world.answerAll()
        for _ in 0..<1000 {
            world.now += .milliseconds(10)
            world.commit(1)
            world.answerAll()
            while let deadline = world.machine.deadline, deadline <= world.now { world.wait(); world.answerAll() }
        }
        #expect(world.saves < 60)
        let before = world.received.count
        world.restart()
        world.runUntilIdle()
        #expect(world.received.count - before <= 26)
        #expect(Set(world.received).count == 1000 && world.stored == 1000)
    }

    @Test func `entries that the output does not want move the cursor`() {
        var world = World.started()
        world.answerAll()
        world.step(.headMoved(7))
        world.wait()
        #expect(world.requests == [.fetch(after: 0, limit: 512)])
        world.requests = []
        world.step(.fetched(JournalBatch([], through: 7)))
        world.runUntilIdle()
        #expect(world.machine.output.cursor == 7 && world.stored == 7)
        #expect(world.calls.isEmpty && world.machine.output.backlog == 0)
    }

    @Test func `a receiver without a cursor is not called for a gap`() {
        var world = World.started(committed: 30)
        world.deleted = 12
        world.runUntilIdle()
        #expect(world.received == Array(13...30) && world.recorded.isEmpty && world.stored == 30)
    }

    @Test func `a journal without progress is asked again after a pause`() {
        var world = World.started()
        world.answerAll()
        world.step(.headMoved(7))
        world.wait()
        world.requests = []
        world.step(.fetched(JournalBatch([], through: 0)))
        #expect(world.requests.isEmpty)
        #expect(world.machine.deadline.map { $0 >= world.now + .seconds(1) } == true)
    }

    @Test(arguments: [BatchMachine.JournalOperation.load, .fetch, .save])
    func `a failed request to the journal is repeated`(operation: BatchMachine.JournalOperation) {
        var world = World.started(committed: 10)
        for _ in 0..<5 {
            while let request = world.requests.first, request.operation != operation { world.answerOne() }
            while world.requests.isEmpty, world.wait() { world.answerUntil(operation) }
            #expect(world.requests.first?.operation == operation)
            world.requests.removeFirst()
            world.step(.journalFailed(operation))
            #expect(world.requests.first?.operation != operation, "without a pause")
        }
        world.runUntilIdle()
        #expect(world.received == Array(1...10) && world.stored == 10)
    }

    @Test func `unexpected answers change nothing`() {
        var world = World.started(committed: 3)
        world.answerAll()
        let before = world.machine.output
        for event: BatchMachine.Event in [
            .written(ticket: 99, nil), .written(ticket: 0, Self.down), .fetched(JournalBatch([], through: 90)),
            .cursorLoaded(50), .start, .headMoved(-1), .closed,
        ] { world.step(event) }
        #expect(world.machine.output == before)
    }
}

extension BatchMachine.Effect {
    var operation: BatchMachine.JournalOperation? {
        switch self {
        case .load: .load
        case .fetch: .fetch
        case .save: .save
        default: nil
        }
    }
}

extension BatchTestWorld {
    /// Answers and waits until `end`, which a slow call of the sink outlasts.
    mutating func run(until end: Duration) {
        while now < end {
            if let next = requests.firstIndex(where: { now + duration(of: $0) < end }) {
                requests.swapAt(0, next)
                answerOne()
            } else {
                guard let deadline = machine.deadline, deadline < end else { break }
                wait()
            }
        }
        now = max(now, end)
    }

    private func duration(of request: BatchMachine.Effect) -> Duration {
        guard case .write(let entries, _, _, _) = request else { return .zero }
        return pace * entries.count
    }

    mutating func answerUntil(_ operation: BatchMachine.JournalOperation) {
        while let request = requests.first, request.operation != operation { answerOne() }
    }
}
