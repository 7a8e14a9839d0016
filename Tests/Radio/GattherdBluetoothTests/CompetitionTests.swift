import GattherdMachines
import GattherdSync
import TestKit
import Testing

@testable import GattherdBluetooth

/// Attempts of several peripherals that want to connect at once.
@Suite(.timeLimit(.minutes(1))) struct CompetitionTests {
    private static func peripheral(_ number: UInt64) -> PeripheralID {
        PeripheralID(adapter: FakeBackend.adapter, address: BluetoothAddress(value: 0xC0FFEE_000000 + number))
    }

    @Test func `the limit of an automatic attempt leaves out the wait for its turn`() {
        let start = ContinuousClock.now
        var automatic = ConnectDeadline(.seconds(30), includesTurns: false, from: start)
        automatic.waited(from: start, to: start + .seconds(3600))
        #expect(automatic.remaining(start + .seconds(3600)) == .seconds(30))
        #expect(automatic.remaining(start + .seconds(3631)) == .zero)
        #expect(automatic.endOfWait == nil)
        var explicit = ConnectDeadline(.seconds(30), includesTurns: true, from: start)
        explicit.waited(from: start, to: start + .seconds(10))
        #expect(explicit.remaining(start + .seconds(10)) == .seconds(20))
        #expect(explicit.endOfWait == start + .seconds(30))
    }

    @Test func `a kept peripheral waits for its turn beyond the limit, and a caller does not`() async throws {
        let turns = ConnectTurns(ConnectQueue(timeout: .seconds(3600)), scanDelay: .seconds(3600))
        try await Bench.run(turns: turns, { $0.connectTimeout = .seconds(3) }) { bench in
            let (strap, kept) = (try bench.strap, bench.central.peripheral(FakeBackend.dial))
            let third = Self.peripheral(3)
            for id in [FakeBackend.strap, FakeBackend.dial, third] { bench.backend.know(id) }
            bench.backend.hang("connect 1")
            async let first: Void = strap.connect(timeout: .seconds(3600))
            await bench.backend.waitUntilAsked("connect 1")
            let changes = kept.connectionStateChanges()
            kept.keepConnected(autoconnect: .never)
            await changes.wait(for: .connecting)
            // The same limit, from later on.
            let called = await outcome { try await bench.central.peripheral(third).connect() }
            #expect(called.error?.kind == .timedOut)
            #expect(called.error?.detail.contains("other peripherals were connecting") == true)
            bench.backend.release("connect 1")
            try await first
            var states: [ConnectionState] = []
            for await change in changes.prefix(2) { states.append(change.state) }
            #expect(states == [.connected, .ready])
        }
    }

    @Test func `a present peripheral overtakes many absent ones`() async throws {
        let turns = ConnectTurns(ConnectQueue(timeout: .milliseconds(1)), scanDelay: .zero)
        try await Bench.run(turns: turns, { $0.connectTimeout = .seconds(3600) }) { bench in
            for number in 10..<60 as Range<UInt64> {
                bench.backend.know(Self.peripheral(number))
                bench.backend.hang("connect \(number)")
                bench.central.peripheral(Self.peripheral(number)).keepConnected()
            }
            try await eventually { bench.central.turns.count == 50 }
            let strap = try bench.strap
            bench.backend.know(FakeBackend.strap)
            strap.keepConnected()
            try await eventually {
                bench.backend.advertise(FakeBackend.strap)
                return strap.connectionState == .ready
            }
            let connects = bench.backend.asked.state.filter { $0.hasPrefix("connect") }
            #expect(try #require(connects.firstIndex(of: "connect 1")) < 50)
            await bench.central.close()
            await bench.backend.waitUntilAsked("stopDiscovery")
        }
    }

    @Test func `a peripheral of an earlier scan does not count as present`() async throws {
        let turns = ConnectTurns(ConnectQueue(timeout: .milliseconds(1), limit: 1), scanDelay: .zero)
        try await Bench.run(turns: turns, { $0.connectTimeout = .seconds(3600) }) { bench in
            bench.backend.advertise(FakeBackend.strap)
            try await eventually { bench.central.peripheral(FakeBackend.strap).lastSeen != nil }
            bench.backend.know(FakeBackend.dial)
            bench.backend.hang("connect")
            bench.central.peripheral(FakeBackend.dial).keepConnected()
            await bench.backend.waitUntilAsked("connect 2")
            try bench.strap.keepConnected()
            await bench.backend.waitUntilAsked("startDiscovery +")
            #expect(!bench.backend.asked.state.contains("connect 1"))
            bench.backend.advertise(FakeBackend.strap)
            await bench.backend.waitUntilAsked("connect 1")
        }
    }

    @Test func `a kept peripheral that need not wait needs no scan`() async throws {
        try await Bench.run(turns: ConnectTurns(scanDelay: .zero)) { bench in
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            bench.backend.know(FakeBackend.strap)
            strap.keepConnected()
            await changes.wait(for: .ready)
            #expect(!bench.backend.asked.state.contains { $0.hasPrefix("startDiscovery") })
        }
    }
}
