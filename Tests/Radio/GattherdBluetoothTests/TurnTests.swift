import GattherdMachines
import GattherdSync
import TestKit
import Testing

@testable import GattherdBluetooth

@Suite(.timeLimit(.minutes(1))) struct TurnTests {
    private final class Ticket: Sendable {}

    @Test func `operations have their turns in order, and privileged ones while the queue is reserved`() {
        var queue = TurnQueue<Ticket>()
        let tickets = (0..<4 as Range<Int>).map { _ in Ticket() }
        let isFirst = queue.enter(tickets[0], isPrivileged: false)
        queue.reserve()
        let hasTurn = [queue.enter(tickets[1], isPrivileged: false), queue.enter(tickets[2], isPrivileged: true)]
        #expect(isFirst && hasTurn == [false, false])
        let next = [queue.leave(tickets[0]), queue.leave(tickets[2])]
        #expect(next[0] === tickets[2] && next[1] == nil)
        let isLate = queue.enter(tickets[3], isPrivileged: true)
        let afterLate = queue.leave(tickets[3])
        #expect(isLate && afterLate == nil)
        #expect(queue.tickets.map { $0 === tickets[1] } == [true])
        let opened = queue.open()
        #expect(opened === tickets[1])
        let last = queue.leave(tickets[1])
        #expect(last == nil && queue.tickets.isEmpty)
    }

    private func request(
        _ peripheral: PeripheralID,
        until deadline: ContinuousClock.Instant? = nil
    ) -> ConnectTurns.Request {
        let late = BluetoothError(.timedOut, "late")
        return ConnectTurns.Request(peripheral: peripheral, failures: 0, deadline: deadline, late: late)
    }

    /// Starts attempts to connect that last until `ends` has their number.
    private func attempt(
        _ turns: ConnectTurns,
        _ peripheral: PeripheralID,
        _ began: LatestValue<[PeripheralID]>,
        until ends: LatestValue<Set<PeripheralID>>
    ) async -> Result<Void, BluetoothError> {
        await outcome {
            try await turns.perform(request(peripheral)) {
                began.update { $0.append(peripheral) }
                for await ended in ends.watch() where ended.contains(peripheral) { break }
            }
        }
    }

    @Test func `peripherals of one adapter connect one after the other`() async throws {
        let turns = ConnectTurns(ConnectQueue(timeout: .seconds(3600)))
        let (strap, dial) = (FakeBackend.strap, FakeBackend.dial)
        let other = PeripheralID(adapter: BluetoothAddress(value: 7), address: dial.address)
        let (began, ends) = (LatestValue<[PeripheralID]>([]), LatestValue<Set<PeripheralID>>([]))
        async let first = attempt(turns, strap, began, until: ends)
        for await begun in began.watch() where begun == [strap] { break }
        async let second = attempt(turns, dial, began, until: ends)
        try await eventually { turns.count == 2 }
        async let elsewhere = attempt(turns, other, began, until: ends)
        for await begun in began.watch() where begun == [strap, other] { break }
        ends.set([strap])
        for await begun in began.watch() where begun == [strap, other, dial] { break }
        ends.set([strap, other, dial])
        #expect(await [first.error, second.error, elsewhere.error] == [nil, nil, nil])
        #expect(turns.count == 0)
    }

    @Test func `an attempt that takes long does not block the others`() async throws {
        let turns = ConnectTurns(ConnectQueue(timeout: .milliseconds(5)))
        let (began, ends) = (LatestValue<[PeripheralID]>([]), LatestValue<Set<PeripheralID>>([]))
        async let first = attempt(turns, FakeBackend.strap, began, until: ends)
        async let second = attempt(turns, FakeBackend.dial, began, until: ends)
        for await begun in began.watch() where begun.count == 2 { break }
        ends.set([FakeBackend.strap, FakeBackend.dial])
        #expect(await [first.error, second.error] == [nil, nil])
    }

    @Test func `a turn that does not come in time is a timeout, and a cancelled one leaves the queue`() async throws {
        let turns = ConnectTurns(ConnectQueue(timeout: .seconds(3600)))
        let (began, ends) = (LatestValue<[PeripheralID]>([]), LatestValue<Set<PeripheralID>>([]))
        async let first = attempt(turns, FakeBackend.strap, began, until: ends)
        for await begun in began.watch() where !begun.isEmpty { break }
        let late = await outcome { try await turns.perform(request(FakeBackend.dial, until: .now)) {} }
        #expect(late.error?.kind == .timedOut)
        let cancelled = await withTaskGroup(of: Result<Void, BluetoothError>.self) { group in
            group.addTask { await attempt(turns, FakeBackend.dial, began, until: ends) }
            _ = try? await eventually { turns.count == 2 }
            group.cancelAll()
            return await group.next()
        }
        #expect(cancelled?.error?.kind == .cancelled)
        #expect(turns.count == 1)
        ends.set([FakeBackend.strap])
        #expect(await first.error == nil)
    }

    @Test func `central connects are serial`() async throws {
        try await Bench.run { bench in
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.advertise(FakeBackend.dial)
            bench.backend.hang("connect")
            let (strap, dial) = (try bench.strap, bench.central.peripheral(FakeBackend.dial))
            async let first: Void = strap.connect()
            await bench.backend.waitUntilAsked("connect 1")
            async let second: Void = dial.connect()
            try await eventually { bench.central.turns.count == 2 }
            bench.backend.release("connect")
            _ = try await (first, second)
            #expect(bench.central.turns.count == 0)
            #expect(dial.connectionState == .ready)
        }
    }
}
