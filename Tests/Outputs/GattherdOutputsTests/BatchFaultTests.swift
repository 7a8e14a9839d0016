import GattherdMachines
import GattherdModel
import GattherdOutputs
import Testing

@Suite struct BatchFaultTests {
    typealias World = BatchTestWorld

    static let down = OutputFault(.unavailable, "down")

    @Test(arguments: [(OutputFault.Kind.unavailable, 60.0), (.misconfigured, 300.0)])
    func `a failing receiver is tried again with growing pauses up to a limit`(
        kind: OutputFault.Kind,
        limit: Double
    ) throws {
        var world = World.started(committed: 1000)
        world.fault = OutputFault(kind, "no")
        var pauses: [Double] = []
        for _ in 0..<30 {
            world.answerAll()
            pauses.append((try #require(world.machine.output.nextTry) - world.now) / .seconds(1))
            world.wait()
        }
        #expect(pauses.allSatisfy { $0 <= limit && $0 >= (kind == .unavailable ? 1 : 10) })
        #expect((pauses.max() ?? 0) > limit / 2)
        #expect(world.machine.output.failures == 30)
        world.fault = nil
        world.runUntilIdle()
        #expect(world.received == Array(1...1000))
    }

    @Test func `pauses are short again after a success`() throws {
        var world = World.started(committed: 1000)
        world.fault = Self.down
        world.runUntilIdle(limit: .seconds(600))
        world.fault = nil
        world.runUntilIdle()
        world.fault = Self.down
        world.commit(1000)
        world.answerAll()
        #expect(try #require(world.machine.output.nextTry) - world.now <= .seconds(2))
    }

    @Test(arguments: [(7.0, 7.0), (100_000, 3600)])
    func `the pause that the receiver asks for is kept, up to a limit`(wish: Double, expected: Double) throws {
        var world = World.started(committed: 1000)
        world.fault = OutputFault(.unavailable, "busy", retryAfter: .seconds(wish))
        world.answerAll()
        #expect(try #require(world.machine.output.nextTry) - world.now == .seconds(expected))
    }

    @Test func `a fault that may end by itself is tried again within its limit`() throws {
        var world = World.started(committed: 1000)
        world.fault = OutputFault(.misconfigured, "another one writes", retryWithin: .seconds(3))
        world.answerAll()
        #expect(try #require(world.machine.output.nextTry) - world.now <= .seconds(3))
    }

    @Test func `a failure and a recovery are reported once`() {
        var world = World.started(committed: 1000)
        world.fault = Self.down
        world.runUntilIdle(limit: .seconds(600))
        world.fault = OutputFault(.unavailable, "down, in other words")
        world.runUntilIdle(limit: .seconds(600))
        #expect(world.reports.map(\.word) == ["unavailable"])
        world.fault = OutputFault(.misconfigured, "token")
        world.runUntilIdle(limit: .seconds(600))
        world.fault = nil
        world.runUntilIdle()
        world.commit(5000)
        world.runUntilIdle()
        #expect(world.reports.map(\.word) == ["unavailable", "misconfigured", "connected"])
    }

    @Test func `the state of an output follows its deliveries`() {
        var world = World.started(committed: 1000)
        #expect(world.machine.output.state == .idle)
        while world.calls.isEmpty { world.answerOne() }
        #expect(world.machine.output.state == .connecting)
        world.fault = Self.down
        world.answerAll()
        #expect(world.machine.output.state == .waiting)
        #expect(world.machine.output.fault == Self.down)
        #expect(world.machine.output.oldest?.seq == 1)
        #expect(world.machine.output.backlog == 1000)
        world.fault = nil
        world.runUntilIdle()
        #expect(world.machine.output.state == .connected)
        #expect(world.machine.output.fault == nil && world.machine.output.oldest == nil)
    }

    @Test(arguments: [1, 2, 500, 999, 1000])
    func `a refused entry is found by halving and skipped`(bad: Int64) {
        var world = World.started(committed: 3000)
        world.refused = [bad]
        world.runUntilIdle()
        #expect(world.received == (1...3000).filter { $0 != bad })
        #expect(world.machine.output.skipped == 1 && world.stored == 3000)
        #expect(world.calls.count < 40)
        #expect(world.reports.map(\.word) == ["connected", "skipped \(bad)"])
        #expect(world.now < .seconds(60))
    }

    @Test func `many refused entries need about one call each`() {
        var world = World.started(committed: 3000)
        world.refused = Set((1...3000).filter { $0.isMultiple(of: 3) })
        world.runUntilIdle(limit: .seconds(86_400))
        #expect(world.received == (1...3000).filter { !$0.isMultiple(of: 3) })
        #expect(world.machine.output.skipped == 1000)
        #expect(world.calls.count < 6000)
    }

    @Test func `entries that the receiver drops are counted, and stop nothing`() {
        var world = World.started(committed: 20_000)
        world.dropped = Set(1...15_000)
        world.runUntilIdle(limit: .seconds(60))
        #expect(world.received == Array(15_001...20_000))
        #expect(world.stored == 20_000)
        #expect(world.machine.output.skipped == 15_000 && world.machine.output.delivered == 5000)
        #expect(world.calls.count < 25)
        #expect(world.reports.filter { $0.word.hasPrefix("lost") }.count == 15)
    }

    @Test func `a receiver that refuses everything loses one entry per pause`() {
        var world = World.started(committed: 3000)
        world.refused = Set(1...3000)
        world.runUntilIdle(limit: .seconds(3600))
        #expect(world.machine.output.skipped < 100 + 3600 / 10)
        #expect(world.machine.output.state == .waiting)
        #expect(world.reports.last?.word == "misconfigured" || world.reports.contains { $0.word == "misconfigured" })
        let lost = world.machine.output.skipped
        world.refused = []
        world.runUntilIdle()
        #expect(world.received.count == 3000 - Int(lost))
        #expect(world.machine.output.state == .connected && world.stored == 3000)
    }

    @Test func `a sink that hangs is cancelled, and called again only after its call has ended`() throws {
        var world = World.started(committed: 1000)
        while world.calls.isEmpty { world.answerOne() }
        guard case .write(_, _, _, let ticket)? = world.requests.first else { throw Missing() }
        world.requests = []
        for _ in 0..<4 where !world.requests.contains(.cancelWrite(ticket: ticket)) { world.wait() }
        #expect(world.now == .seconds(30))
        #expect(world.requests == [.cancelWrite(ticket: ticket)])
        #expect(world.machine.output.state == .waiting)
        world.requests = []
        world.now += .seconds(3600)
        world.step(.tick)
        #expect(world.calls.count == 1)
        world.step(.written(ticket: ticket, OutputFault(.unavailable, "cancelled")))
        #expect(world.calls.count == 2)
        world.runUntilIdle()
        #expect(world.received == Array(1...1000))
        #expect(world.reports.map(\.word) == ["unavailable", "connected"])
    }

    @Test(arguments: [nil, .seconds(25), .seconds(29)] as [Duration?])
    func `batches that take too long are halved, and grow again when the receiver is fast`(life: Duration?) {
        var world = World.started(committed: 3000)
        (world.pace, world.connectionLife) = (.milliseconds(300), life)
        world.runUntilIdle(limit: .seconds(3600))
        #expect(world.received == Array(1...3000))
        #expect(world.calls.map(\.count).prefix(5) == [1000, 500, 250, 125, 62])
        #expect(world.calls.dropFirst(4).allSatisfy { $0.count <= 62 }, "no further time-outs")
        world.pace = .zero
        world.commit(8000)
        world.runUntilIdle()
        #expect(world.received == Array(1...11_000))
        #expect(world.calls.contains { $0.count == 1000 && ($0.first ?? 0) > 3000 })
    }

    @Test(arguments: [1, 2, 5, 10] as [Int64])
    func `a slow receiver makes progress although its connections end early`(life: Int64) {
        var world = World.started(committed: 3000)
        (world.pace, world.connectionLife) = (.milliseconds(50), .seconds(life))
        world.runUntilIdle(limit: .seconds(3600))
        #expect(world.received == Array(1...3000))
    }

    @Test func `a slow receiver makes progress although the output is killed every few seconds`() {
        var world = World.started(committed: 600, BatchOptions())
        world.pace = .milliseconds(100)
        for _ in 1...60 where world.stored < 600 {
            world.run(until: world.now + .seconds(20))
            world.restart()
        }
        #expect(world.stored == 600 && Set(world.received) == Set(1...600))
    }

    @Test func `the first batch is small, and fast ones grow`() {
        var world = World.started(committed: 5000, BatchOptions())
        world.runUntilIdle()
        #expect(world.calls.map(\.count).prefix(8) == [16, 32, 64, 128, 256, 512, 1000, 1000])
        #expect(world.received == Array(1...5000))
    }

    @Test func `a receiver that is slow and refuses entries loses these only`() {
        var world = World.started(committed: 3000)
        (world.pace, world.refused) = (.seconds(1), [7, 1500, 1501, 3000])
        world.runUntilIdle(limit: .seconds(86_400))
        #expect(world.received == (1...3000).filter { !world.refused.contains($0) })
        #expect(world.machine.output.skipped == 4)
    }

    @Test func `batches that a network cuts at once are halved, and large ones are tried ever more seldom`() {
        var world = World.started(committed: 20_000, BatchOptions())
        world.cutAbove = 100
        world.runUntilIdle()
        #expect(world.received == Array(1...20_000))
        #expect(world.calls.count { $0.count > 100 } < 6)
        world.cutAbove = nil
        world.commit(100_000)
        world.runUntilIdle()
        #expect(world.calls.contains { $0.count == 1000 }, "the network is good again")
    }

    @Test func `batches are halved when a network begins to cut connections at a smaller size`() {
        var world = World.started(committed: 3000)
        world.runUntilIdle()
        world.cutAbove = 100
        world.commit(3000)
        world.runUntilIdle()
        #expect(world.received == Array(1...6000))
        #expect(world.calls.count { $0.count > 100 } < 20)
    }

    @Test func `failures of accepted sizes do not delay larger batches`() {
        var world = World.started(committed: 5000, BatchOptions())
        world.cutAbove = 100
        world.runUntilIdle()
        world.cutAbove = nil
        for _ in 0..<40 {
            world.losesAnswer = true
            world.commit(64)
            world.runUntilIdle()
        }
        world.commit(2000)
        world.runUntilIdle()
        #expect(world.calls.contains { $0.count > 128 })
    }

    @Test func `a receiver that asks for pauses gets batches as large as before`() {
        var world = World.started(committed: 1000)
        world.fault = OutputFault(.unavailable, "busy", retryAfter: .zero)
        world.runUntilIdle(limit: .seconds(600))
        world.fault = nil
        world.runUntilIdle()
        #expect(world.received == Array(1...1000))
        #expect(world.calls.count > 3 && world.calls.allSatisfy { $0.count == 1000 })
    }

    @Test func `a short failure does not shrink batches, and after a long one they soon are large again`() {
        var world = World.started(committed: 1000)
        world.fault = Self.down
        // Two attempts.
        world.runUntilIdle(limit: .milliseconds(1900))
        world.fault = nil
        world.runUntilIdle()
        #expect(world.received == Array(1...1000) && world.calls.last?.count == 1000)
        world.fault = Self.down
        world.commit(2000)
        world.runUntilIdle(limit: .seconds(600))
        world.fault = nil
        let failed = world.calls.count
        world.runUntilIdle()
        #expect(world.received == Array(1...3000))
        #expect(world.calls.count < failed + 15 && world.calls.dropFirst(failed).contains { $0.count > 500 })
    }

    @Test func `entries that a cancelled call has delivered are not repeated`() throws {
        var world = World.started(committed: 1000)
        while world.calls.isEmpty { world.answerOne() }
        guard case .write(_, _, _, let ticket)? = world.requests.first else { throw Missing() }
        world.requests = []
        world.now = .seconds(30)
        world.step(.tick)
        world.step(.written(ticket: ticket, nil))
        world.runUntilIdle()
        #expect(world.calls.count == 1 && world.stored == 1000)
    }
}

struct Missing: Error {}

extension BatchMachine.Report {
    var word: String {
        switch self {
        case .connected: "connected"
        case .failed(let fault, _): fault.kind.rawValue
        case .skipped(let entry, _): "skipped \(entry.seq)"
        case .lost(let count, let first, _): "lost \(count) from \(first.seq)"
        case .missing(let gap): "missing \(gap.through)"
        }
    }
}
