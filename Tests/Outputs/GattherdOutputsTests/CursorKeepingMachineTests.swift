import GattherdMachines
import GattherdModel
import GattherdOutputs
import Testing

/// ``BatchMachine`` with a receiver that keeps the cursor itself.
struct CursorKeepingMachineTests {
    private static let down = OutputFault(.unavailable, "no route")

    private func world(committed count: Int = 0, _ change: (inout BatchOptions) -> Void = { _ in }) -> BatchTestWorld {
        var options = BatchOptions()
        change(&options)
        var world = BatchTestWorld(options, keepsCursor: true)
        world.commit(count)
        return world
    }

    private func start(_ world: inout BatchTestWorld) {
        world.step(.start)
        world.step(.headMoved(world.committed.last?.seq ?? 0))
    }

    @Test func `the receiver is asked for its cursor before anything is fetched or written`() {
        var world = world(committed: 10)
        (world.stored, world.receiverCursor) = (7, 4)
        start(&world)
        #expect(world.requests == [.loadReceiverCursor(ticket: 1)])
        world.answerOne()
        #expect(world.requests == [.rewind(4)])
        world.runUntilIdle()
        #expect(world.received == Array(5...10) && world.calls.count == 1)
        #expect(world.receiverCursor == 10 && world.stored == 10)
    }

    @Test func `a receiver that has not answered since the start has a backlog`() {
        var world = world(committed: 10)
        (world.stored, world.receiverCursor) = (7, 4)
        start(&world)
        world.step(.cursorLoaded(7))
        #expect(world.machine.output.backlog == 3)
        world.answerOne()
        world.runUntilIdle()
        #expect(world.received == Array(5...10) && world.machine.output.backlog == 0)
    }

    @Test func `a receiver that is ahead of the journal's cursor gets nothing twice`() {
        var world = world(committed: 10)
        (world.stored, world.receiverCursor) = (2, 8)
        start(&world)
        world.runUntilIdle()
        #expect(world.received == [9, 10] && world.stored == 10)
    }

    @Test func `after a fault the receiver is asked again, and a cursor that has not moved costs no rewind`() {
        var world = world()
        start(&world)
        world.runUntilIdle()
        world.commit(5)
        world.fault = Self.down
        world.runUntilIdle(limit: .seconds(10))
        world.fault = nil
        world.runUntilIdle()
        #expect(world.received == Array(1...5))
        #expect(world.cursorLoads > 2 && world.rewinds == [0])
    }

    @Test func `a receiver that is restored from a backup gets what it lacks again`() {
        var world = world(committed: 100)
        start(&world)
        world.runUntilIdle()
        #expect(world.received.count == 100)
        (world.receiverCursor, world.received) = (40, Array(1...40))
        world.commit(3)
        world.runUntilIdle()
        #expect(world.received == Array(1...103) && world.rewinds == [0, 40] && world.stored == 103)
    }

    @Test func `a commit whose answer was lost is not repeated`() {
        var world = world(committed: 3) { $0.writeTimeout = .seconds(5) }
        start(&world)
        while world.calls.isEmpty { if world.requests.isEmpty { world.wait() } else { world.answerOne() } }
        let call = world.requests.removeFirst()
        guard case .write(let entries, _, let through, let ticket) = call else {
            Issue.record("no write but \(call)")
            return
        }
        // The receiver commits, and the connection breaks before its answer.
        (world.received, world.receiverCursor) = (entries.map(\.seq), through)
        world.step(.written(ticket: ticket, Self.down))
        world.runUntilIdle()
        #expect(world.received == [1, 2, 3] && world.calls.count == 1 && world.stored == 3)
        #expect(world.machine.output.state == .connected && world.machine.output.fault == nil)
    }

    @Test func `entries that disappear while the receiver is away are recorded, although its cursor has not moved`() {
        var world = world(committed: 5) { $0.interval = .zero }
        start(&world)
        world.runUntilIdle()
        world.fault = Self.down
        world.commit(20)
        world.runUntilIdle(limit: .seconds(5))
        // Some entries are fetched already.
        world.commit(1500)
        world.deleted = 1400
        world.fault = nil
        world.runUntilIdle()
        #expect(world.rewinds == [0] && world.known == Array(1...1525))
        #expect(world.recorded.count == 1 && world.recorded.last?.through == 1400)
        #expect(world.received.prefix(25) == Array(1...25)[...] && world.received == world.received.sorted())
        #expect(world.stored == 1525)
    }

    @Test func `a gap at the end is recorded before the output stops`() {
        var world = world(committed: 5)
        start(&world)
        world.runUntilIdle()
        world.commit(20)
        world.deleted = 25
        world.step(.stop(drain: .seconds(5)))
        world.runUntilIdle()
        #expect(world.known == Array(1...25) && world.stored == 25 && world.isFinished)
    }

    @Test func `a gap whose answer was lost is recorded once`() throws {
        var world = world(committed: 9)
        world.deleted = 4
        start(&world)
        while !world.requests.contains(where: \.isRecord) {
            if world.requests.isEmpty { world.wait() } else { world.answerOne() }
        }
        guard case .record(let gap, let ticket)? = world.requests.popLast() else { throw Missing() }
        (world.recorded, world.receiverCursor) = ([gap], gap.through)
        world.step(.written(ticket: ticket, Self.down))
        world.runUntilIdle()
        #expect(world.recorded.count == 1 && world.known == Array(1...9))
    }

    @Test func `a fetch that is answered after the receiver's cursor has changed does not stall the output`() throws {
        var world = world(committed: 12) { ($0.entries, $0.interval) = (4, .zero) }
        start(&world)
        while world.calls.isEmpty { world.answerOne() }
        world.step(.tick)
        let late = try #require(world.requests.firstIndex { $0.operation == .fetch })
        let fetch = world.requests.remove(at: late)
        guard case .write(let entries, _, let through, let ticket)? = world.requests.popLast() else { throw Missing() }
        // The receiver commits, and its answer is lost.
        (world.received, world.receiverCursor) = (entries.map(\.seq), through)
        world.step(.written(ticket: ticket, Self.down))
        while !world.requests.contains(where: \.isCursorLoad) { world.wait() }
        world.answerAll()
        world.requests.append(fetch)
        world.runUntilIdle()
        #expect(world.received == Array(1...12) && world.stored == 12)
    }

    @Test func `entries that the journal has deleted are recorded as a gap, which is repeated until it is recorded`() {
        var world = world(committed: 20)
        (world.deleted, world.stored) = (12, 15)
        start(&world)
        world.answerOne()
        world.answerOne()
        world.fault = Self.down
        world.runUntilIdle(limit: .seconds(5))
        #expect(world.recorded.isEmpty && world.received.isEmpty)
        world.fault = nil
        world.runUntilIdle()
        #expect(world.recorded == [JournalGap(after: 0, through: 12, reason: "deleted")])
        #expect(world.received == Array(13...20) && world.stored == 20)
        #expect(world.reports.map(\.word).contains("missing 12"))
    }

    @Test func `a refused entry is skipped and moves the receiver's cursor`() {
        var world = world(committed: 9) { $0.entries = 4 }
        world.refused = [3, 9]
        start(&world)
        world.runUntilIdle()
        #expect(world.received == [1, 2, 4, 5, 6, 7, 8] && world.receiverCursor == 9 && world.stored == 9)
        #expect(world.machine.output.skipped == 2)
        world.restart()
        world.runUntilIdle()
        #expect(world.machine.output.skipped == 0 && world.received.count == 7)
    }

    @Test func `a receiver that refuses everything loses one entry per pause`() {
        var world = world(committed: 50) { $0.maximumRefusals = 3 }
        world.refused = Set(1...50)
        start(&world)
        world.runUntilIdle(limit: .seconds(60))
        let skipped = world.machine.output.skipped
        #expect(skipped > 3 && skipped < 20 && world.receiverCursor == Int64(skipped))
        #expect(world.machine.output.fault?.kind == .misconfigured)
    }

    @Test func `a journal that cannot go to the cursor is asked again after the receiver`() {
        var world = world(committed: 5)
        world.rewindFailures = 3
        start(&world)
        world.runUntilIdle()
        #expect(world.received == Array(1...5) && world.cursorLoads == 4 && world.rewinds == [0])
    }

    @Test func `the journal goes back only when no save is pending`() {
        var world = world(committed: 10) { ($0.entries, $0.interval, $0.saveCount) = (2, .zero, 1) }
        start(&world)
        func isSave(_ request: BatchMachine.Effect) -> Bool { if case .save = request { true } else { false } }
        func isWrite(_ request: BatchMachine.Effect) -> Bool { if case .write = request { true } else { false } }
        while !world.requests.contains(where: isSave) { world.answerOne() }
        let late = world.requests.filter(isSave)
        while !world.requests.contains(where: isWrite) {
            world.requests.removeAll(where: isSave)
            if world.requests.isEmpty { world.wait() } else { world.answerOne() }
        }
        // The journal answers later than the receiver, which fails and is restored.
        world.requests.removeAll(where: isSave)
        (world.fault, world.received) = (Self.down, [1])
        world.answerAll()
        (world.fault, world.receiverCursor) = (nil, 1)
        world.wait()
        world.answerAll()
        #expect(world.cursorLoads == 2 && world.rewinds == [0])
        world.requests = late
        world.runUntilIdle()
        #expect(world.rewinds == [0, 1] && world.received == Array(1...10) && world.stored == 10)
    }

    @Test func `the receiver's cursor passes numbers without an entry together with the next entries`() {
        var world = world(committed: 2)
        start(&world)
        world.runUntilIdle()
        world.step(.headMoved(5))
        world.runUntilIdle(limit: .seconds(10))
        #expect(world.receiverCursor == 2 && world.machine.output.backlog >= 0)
        #expect(world.calls.count == 1)
    }

    @Test func `a drain delivers what is committed and ends with the cursor saved`() {
        var world = world(committed: 4) { $0.interval = .seconds(3600) }
        start(&world)
        world.answerAll()
        world.step(.stop(drain: .seconds(5)))
        world.runUntilIdle()
        #expect(world.received == [1, 2, 3, 4] && world.stored == 4 && world.isFinished && world.isClosed)
    }

    @Test(arguments: 0..<300) func `with faults, restores and lost answers, the receiver has each entry exactly once`(
        seed: Int
    ) {
        var random = SplitMix64(seed: UInt64(seed))
        var world = world(committed: 20) { ($0.entries, $0.interval, $0.writeTimeout) = (7, .zero, .seconds(5)) }
        start(&world)
        for _ in 0..<400 {
            switch random.next() % 16 {
            case 0: world.commit(Int(random.next() % 9))
            case 1: world.fault = world.fault == nil ? Self.down : nil
            case 2:
                // A restore of the receiver, which loses its last transactions.
                world.restore(to: max(0, world.receiverCursor - Int64(random.next() % 20)))
            // A restart would end a stall, so half of the runs have none.
            case 3: if seed.isMultiple(of: 2) { world.restart() }
            case 4: world.rewindFailures = 1
            case 5: world.wait()
            case 6:
                // Entries disappear, some of which nobody has got.
                let last = world.committed.last?.seq ?? 0
                world.deleted = max(world.deleted, last - Int64(random.next() % 30))
            case 7: world.losesAnswer = true
            default: if world.requests.isEmpty { world.wait() } else { world.answerAny(using: &random) }
            }
        }
        world.fault = nil
        world.commit(1)
        world.runUntilIdle()
        #expect(world.known == Array(1...(world.committed.last?.seq ?? 0)))
        #expect(world.received == world.received.sorted())
        #expect(world.stored == world.receiverCursor && world.receiverCursor == world.committed.last?.seq)
    }
}

extension BatchMachine.Effect {
    fileprivate var isRecord: Bool { if case .record = self { true } else { false } }
    fileprivate var isCursorLoad: Bool { if case .loadReceiverCursor = self { true } else { false } }
}
