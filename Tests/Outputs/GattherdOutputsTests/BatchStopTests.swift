import GattherdModel
import GattherdOutputs
import Testing

@Suite struct BatchStopTests {
    typealias World = BatchTestWorld

    @Test func `a stop delivers the rest at once, then closes`() {
        var world = World.started()
        world.answerAll()
        world.commit(3)
        world.step(.stop(drain: .seconds(5)))
        world.answerAll()
        #expect(world.now == .zero)
        #expect(world.received == [1, 2, 3] && world.stored == 3)
        #expect(world.isClosed && world.isFinished)
    }

    @Test func `a stop delivers entries whose head has not arrived yet`() {
        var world = World.started()
        world.answerAll()
        world.committed.append(.text(seq: 1))
        world.step(.stop(drain: .seconds(5)))
        world.answerAll()
        #expect(world.received == [1] && world.stored == 1 && world.isFinished)
    }

    @Test func `a stop does not wait for a receiver that is down`() {
        var world = World.started(committed: 1000)
        world.fault = OutputFault(.unavailable, "down")
        world.answerAll()
        world.step(.stop(drain: .seconds(5)))
        world.answerAll()
        #expect(world.isFinished && world.isClosed && world.stored == 0)
    }

    @Test func `a receiver that goes down during the stop ends it`() {
        var world = World.started(committed: 10)
        world.answerAll()
        world.fault = OutputFault(.unavailable, "down")
        world.step(.stop(drain: .seconds(5)))
        world.answerAll()
        #expect(world.isFinished && world.isClosed)
    }

    @Test func `a hanging sink delays a stop at most by the drain time and the closing limit`() {
        var world = World.started(committed: 1000)
        while world.calls.isEmpty { world.answerOne() }
        world.requests = []
        world.step(.stop(drain: .seconds(5)))
        while !world.isFinished, world.wait() {}
        #expect(world.now == .seconds(7))
        #expect(world.requests.contains(.cancelWrite(ticket: 1)))
        #expect(!world.requests.contains(.close), "a sink has one call at a time")
    }

    @Test func `a journal that hangs delays a stop by the same bound`() {
        var world = World.started(committed: 1000)
        world.answerAll()
        world.commit(1)
        world.step(.stop(drain: .seconds(5)))
        while !world.isFinished {
            world.requests.removeAll { $0.operation != nil }
            world.answerAll()
            if !world.isFinished { world.wait() }
        }
        #expect(world.now <= .seconds(8))
    }

    @Test func `a journal that fails during a stop is asked again`() {
        var world = World.started()
        world.answerAll()
        world.commit(3)
        world.step(.stop(drain: .seconds(5)))
        #expect(world.requests.first?.operation == .fetch)
        world.requests.removeFirst()
        world.step(.journalFailed(.fetch))
        world.runUntilIdle()
        #expect(world.received == [1, 2, 3] && world.isFinished)
    }

    @Test func `a cursor that cannot be saved at the end does not hold up the stop`() {
        var options = BatchOptions()
        options.saveInterval = .seconds(3600)
        var world = World.started(options)
        world.answerAll()
        world.commit(3)
        world.step(.stop(drain: .seconds(5)))
        while let request = world.requests.first {
            guard request.operation == .save else { world.answerOne(); continue }
            world.requests.removeFirst()
            world.step(.journalFailed(.save))
        }
        #expect(world.isFinished && world.now == .zero)
    }

    @Test func `a stop before the start, or without a cursor, ends at once`() {
        for isStarted in [false, true] {
            var world = World()
            if isStarted {
                world.step(.start)
                world.requests = []
            }
            world.step(.stop(drain: .seconds(5)))
            world.answerAll()
            #expect(world.isFinished && world.isClosed && world.machine.output.state == .stopped)
        }
    }
}
