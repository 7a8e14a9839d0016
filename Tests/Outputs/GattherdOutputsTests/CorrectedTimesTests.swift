import GattherdMachines
import GattherdModel
import GattherdOutputs
import Testing

/// Fetched entries whose times the journal corrects.
@Suite struct CorrectedTimesTests {
    typealias World = BatchTestWorld

    private static let hour: Int64 = 3600
    private static let down = OutputFault(.unavailable, "down")

    /// The right times of entries.
    private func times(_ seqs: ClosedRange<Int64>) -> [Timestamp] {
        seqs.map { Timestamp(microseconds: ($0 + Self.hour) * 1_000_000) }
    }

    @Test func `entries that wait for a receiver are fetched again after a correction`() {
        var world = World.started(committed: 10)
        world.fault = Self.down
        world.runUntilIdle(limit: .seconds(60))
        #expect(world.machine.output.fetched == 10)
        world.correctTimes(by: Self.hour)
        #expect(world.machine.output.backlog == 10)
        world.fault = nil
        world.runUntilIdle()
        #expect(world.received == Array(1...10) && world.receivedTimes == times(1...10))
        #expect(world.stored == 10 && world.machine.output.backlog == 0)
    }

    @Test func `entries in the sink are not fetched again unless the call fails`() {
        var world = World.started(committed: 2000)
        while world.calls.isEmpty { world.answerOne() }
        world.correctTimes(by: Self.hour)
        world.runUntilIdle()
        #expect(world.received == Array(1...2000))
        #expect(Array(world.receivedTimes.suffix(1000)) == times(1001...2000))
    }

    /// Answers all requests, as a journal that has lost the entries 11 to 20.
    private func answerAllWithGap(_ world: inout World) {
        while let request = world.requests.first {
            guard case .fetch(let after, _) = request, after < 20 else {
                world.answerOne()
                continue
            }
            world.requests.removeFirst()
            let gap = JournalBatch(missing: JournalGap(after: after, through: 20, reason: "lost"))
            world.step(.fetched(after < 10 ? world.batch(after: after, limit: 10 - Int(after)) : gap))
        }
    }

    @Test func `a gap that is fetched again is not reported again`() {
        var world = World.started(committed: 30)
        world.fault = Self.down
        for _ in 0..<2 {
            for _ in 0..<100 where world.machine.output.fetched < 20 {
                answerAllWithGap(&world)
                _ = world.wait()
            }
            #expect(world.machine.output.fetched == 20)
            world.correctTimes(by: Self.hour)
        }
        #expect(world.reports.count { if case .missing = $0 { true } else { false } } == 1)
    }

    @Test func `the answer to a fetch from before a correction is not written`() {
        var world = World.started(committed: 10)
        world.answerAll()
        world.wait()
        #expect(world.requests.count == 1 && world.calls.isEmpty)
        let outdated = world.batch(after: 0, limit: 100)
        world.requests.removeAll()
        world.correctTimes(by: Self.hour)
        world.step(.fetched(outdated))
        #expect(world.calls.isEmpty)
        world.runUntilIdle()
        #expect(world.received == Array(1...10) && world.receivedTimes == times(1...10))
    }

    @Test func `a stop delivers entries that must be fetched again`() {
        var world = World.started(committed: 2000)
        while world.calls.isEmpty { world.answerOne() }
        world.correctTimes(by: Self.hour)
        world.step(.stop(drain: .seconds(5)))
        world.runUntilIdle(limit: .seconds(5))
        #expect(world.received == Array(1...2000))
        #expect(Array(world.receivedTimes.suffix(1000)) == times(1001...2000))
        #expect(world.isFinished && world.stored == 2000)
    }

    @Test func `a receiver that keeps the cursor gets each entry once, also with refused ones`() {
        var world = World(keepsCursor: true)
        world.commit(100)
        world.refused = [30]
        world.step(.start)
        world.step(.headMoved(100))
        while world.machine.output.skipped == 0, !world.requests.isEmpty || world.wait() {
            if !world.requests.isEmpty { world.answerOne() }
        }
        world.correctTimes(by: Self.hour)
        world.runUntilIdle()
        #expect(world.received == (1...100).filter { $0 != 30 } && world.receiverCursor == 100)
        #expect(world.machine.output.skipped == 1)
        #expect(Array(world.receivedTimes.suffix(70)) == times(31...100))
    }
}
