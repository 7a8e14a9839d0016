import GattherdBluetooth
import GattherdGATT
import GattherdMachines
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdDaemon

/// The order of requests and controls on one link.
@Suite(.timeLimit(.minutes(1))) struct RequestTurnTests {
    private let log = Locked<[String]>([])

    private func note(_ word: String) { log.withLock { $0.append(word) } }

    /// Starts a request that ends with the first element of `end`.
    private func request(_ name: String, in turn: RequestTurn, until end: AsyncStream<Void>) -> Task<Void, Never> {
        Task {
            await turn.perform {
                note("\(name) begins")
                for await _ in end { break }
                note("\(name) ends")
            }
        }
    }

    @Test func `a request waits for the end of the one before`() async {
        let turn = RequestTurn()
        let (firstEnd, endFirst) = AsyncStream.makeStream(of: Void.self)
        let (secondEnd, endSecond) = AsyncStream.makeStream(of: Void.self)
        let first = request("first", in: turn, until: firstEnd)
        while log.withLock(\.isEmpty) { await Task.yield() }
        let second = request("second", in: turn, until: secondEnd)
        endSecond.yield()
        for _ in 0..<1000 { await Task.yield() }
        #expect(log.withLock { $0 } == ["first begins"])
        endFirst.yield()
        await first.value
        await second.value
        #expect(log.withLock { $0 } == ["first begins", "first ends", "second begins", "second ends"])
    }

    @Test func `a request that waited too long starts anyway, and the turn stays with its owner`() async {
        let turn = RequestTurn(limit: .milliseconds(1))
        let (end, finish) = AsyncStream.makeStream(of: Void.self)
        let first = request("first", in: turn, until: end)
        while log.withLock(\.isEmpty) { await Task.yield() }
        await turn.perform { note("second") }
        #expect(log.withLock { $0 } == ["first begins", "second"])
        finish.yield()
        await first.value
        await turn.perform { note("third") }
        #expect(log.withLock { $0.last } == "third")
    }

    @Test func `a request that is cancelled while it waits does not take the turn`() async {
        let turn = RequestTurn()
        let (end, finish) = AsyncStream.makeStream(of: Void.self)
        let first = request("first", in: turn, until: end)
        while log.withLock(\.isEmpty) { await Task.yield() }
        let second = Task { await turn.perform { note("cancelled: \(Task.isCancelled)") } }
        second.cancel()
        await second.value
        finish.yield()
        await first.value
        await turn.perform { note("third") }
        #expect(log.withLock { $0 } == ["first begins", "cancelled: true", "first ends", "third"])
    }

    @Test(arguments: [true, false])
    func `controls take turns with polls, if there are any`(isPolled: Bool) throws {
        var profile = OctetProfile("cells", service: 0xAAAA, characteristic: 0xBBBB)
        if isPolled {
            profile.characteristics[0].poll = PollRule(characteristic: 0xBBBB, requests: [[1]], period: .seconds(5))
        }
        profile.controls = [ControlDescriptor(name: "limit", kind: .integer(0...100), characteristic: 0xBBBB)]
        let remote = RemoteCharacteristic(
            peripheral: PeripheralID(adapter: BluetoothAddress(value: 1), address: BluetoothAddress(value: 2)),
            service: 0xAAAA,
            uuid: 0xBBBB,
            handle: "/char1",
            properties: [.notify, .write]
        )
        let plan = try ProfileAssignment(candidates: [profile], areChosen: true, table: [remote])
        #expect(plan.controls.count == 1)
        #expect((plan.controls.first?.turn === plan.turn) == isPolled)
    }

    // MARK: - On a link

    /// A profile that is polled with 1 and has a control.
    private func polled(answer: ResponseRule? = nil) -> OctetProfile {
        var profile = OctetProfile("cells", service: 0xAAAA, characteristic: 0xBBBB)
        profile.characteristics[0].isReadAtConnect = false
        profile.characteristics[0].poll = PollRule(
            characteristic: 0xBBBB,
            requests: [[1]],
            period: .milliseconds(1),
            timeout: .seconds(3600)
        )
        profile.controls = [
            ControlDescriptor(name: "limit", kind: .integer(0...100), characteristic: 0xBBBB, answer: answer)
        ]
        return profile
    }

    private let limit = ControlRequest(device: "strap", control: "limit", value: .integer(9))

    @Test func `a control is written after the answer to a request`() async throws {
        let bench = try Bench([polled()])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            await bench.central.wait(for: .write([1]))
            async let answer = bench.supervisor.controls.set(limit)
            for _ in 0..<10_000 { await Task.yield() }
            #expect(!bench.central.calls.state.contains(.write([9])))
            bench.central.notify([0x11])
            #expect(await answer == .success(.integer(9)))
        }
    }

    @Test func `a control whose lease ends while it waits for its turn is not written`() async throws {
        let board = LeaseBoard()
        let status = LeaseStatus(role: .owner, owner: "west", epoch: 7, reason: "", bids: [])
        @Sendable func setEnd(_ end: ContinuousClock.Instant) {
            let entry = LeaseBoard.Entry(status, until: end, isOwnedElsewhere: false)
            board.update(["strap": entry], problem: nil, at: Timestamp(microseconds: 1))
        }
        setEnd(.now + .seconds(3600))
        let bench = try Bench([polled()], leases: board)
        try await bench.run {
            bench.powerOn()
            bench.supervisor.admit("strap")
            await bench.announcer.wait(for: "strap", .ready)
            await bench.central.wait(for: .write([1]))
            async let answer = bench.supervisor.controls.set(limit)
            for _ in 0..<10_000 { await Task.yield() }
            setEnd(.now)
            bench.central.notify([0x11])
            #expect(await answer == .failure(.notOwner(device: "strap", owner: nil)))
        }
        #expect(!bench.central.calls.state.contains(.write([9])))
    }

    @Test func `a request is written after the answer to a control`() async throws {
        let pattern = try #require(BytePattern("80"))
        let rule = ResponseRule(characteristic: 0xBBBB, cases: [.init(pattern, .success)], timeout: .seconds(3600))
        let bench = try Bench([polled(answer: rule)])
        bench.central.state.withLock { $0.answers = [[1]: [0x11]] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            await bench.central.wait(for: .write([1]), times: 2)
            async let answer = bench.supervisor.controls.set(limit)
            await bench.central.wait(for: .write([9]))
            for _ in 0..<10_000 { await Task.yield() }
            #expect(bench.central.calls.state.last == .write([9]))
            let count = bench.central.calls.state.count { $0 == .write([1]) }
            bench.central.notify([0x80])
            #expect(await answer == .success(.integer(9)))
            await bench.central.wait(for: .write([1]), times: count + 1)
        }
    }
}
