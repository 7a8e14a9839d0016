import GattherdSync
import Testing

@testable import GattherdBluetooth

/// A central before it runs, and after it was closed.
@Suite(.timeLimit(.minutes(1))) struct LifeTests {
    // MARK: - Before

    @Test func `a central that does not run fails at once`() async {
        let central = Central(backend: FakeBackend())
        let strap = central.peripheral(FakeBackend.strap)
        let errors = [
            await outcome { _ = try await central.scan().first() }.error,
            await outcome { try await central.connect(strap) }.error,
            await outcome { try await strap.pair() }.error,
            await outcome { _ = try await central.bonds() }.error,
            await outcome { try await central.forget(strap) }.error,
        ]
        for error in errors {
            #expect(error?.kind == .serviceUnavailable)
            #expect(error?.detail.contains("the central is not running: use withCentral, or call run()") == true)
        }
        #expect(errors[0]?.operation == .scan && errors[1]?.operation == .connect)
    }

    @Test func `a central that is about to run is awaited`() async throws {
        let backend = FakeBackend()
        backend.advertise(FakeBackend.strap)
        var waits = WaitLimits()
        waits.start = .seconds(3600)
        let central = Central(backend, Central.Configuration(), .silent, ConnectTurns(), waits)
        async let heard = central.scan().first().peripheral
        async let connected: Void = central.connect(central.peripheral(FakeBackend.strap))
        async let life: Void = central.run()
        #expect(try await heard.id == FakeBackend.strap)
        try await connected
        await central.close()
        await life
    }

    @Test func `a second run waits for the end of the first`() async throws {
        let backend = FakeBackend()
        let central = Central(backend: backend)
        async let first: Void = central.run()
        async let second: Void = central.run()
        try await central.waitUntilReady()
        await central.close()
        _ = await (first, second)
        #expect(backend.runs.state == 1)
    }

    // MARK: - After

    /// Runs `body` with a central that was closed and had a link.
    private func closed(
        keepsLinks: Bool = false,
        _ body: (Bench, Peripheral) async throws -> Void
    ) async throws {
        var kept: (Bench, Peripheral)?
        try await Bench.run({ $0.keepsLinks = keepsLinks }) { bench in
            kept = (bench, try await bench.connected())
        }
        let (bench, strap) = try #require(kept)
        try await body(bench, strap)
    }

    /// Weak references to the objects of a program's closures.
    private struct Owned {
        final class Object: Sendable {}

        weak var task: Object?
        weak var policy: Object?
    }

    @Test func `a closed central releases its connection tasks and policies`() async throws {
        var central: Central?
        var owned = Owned()
        try await Bench.run { bench in
            let (task, policy) = (Owned.Object(), Owned.Object())
            bench.central.addConnectionTask { _ in withExtendedLifetime(task) {} }
            try await bench.connected(autoconnect: .when { _ in withExtendedLifetime(policy) { true } })
            (central, owned) = (bench.central, Owned(task: task, policy: policy))
            #expect(owned.task != nil && owned.policy != nil)
        }
        #expect(owned.task == nil && owned.policy == nil)
        withExtendedLifetime(central) {}
    }

    private func drain(_ sequence: some AsyncSequence) async throws {
        for try await _ in sequence {}
    }

    @Test(arguments: [false, true])
    func `all sequences end with the central`(keepsLinks: Bool) async throws {
        let backend = FakeBackend()
        try await withThrowingTaskGroup(of: Void.self) { group in
            try await Bench.run(on: backend, { $0.keepsLinks = keepsLinks }) { bench in
                try await bench.central.waitUntilReady()
                let strap = try await bench.connected()
                let (states, values) = (bench.central.states, strap.valueUpdates())
                let (names, services) = (strap.nameChanges(), strap.serviceChanges())
                let (changes, all) = (strap.connectionStateChanges(), bench.central.connectionStateChanges())
                let levels = try await strap.notifications(of: [UInt8].self, from: 0x2A19)
                group.addTask { try await drain(states) }
                group.addTask { try await drain(values) }
                group.addTask { try await drain(names) }
                group.addTask { try await drain(services) }
                group.addTask { try await drain(changes) }
                group.addTask { try await drain(all) }
                group.addTask { try await drain(levels) }
                let lasting = strap.lastingNotifications(of: [UInt8].self, from: 0x2A19)
                group.addTask { try await drain(lasting) }
                group.addTask { try await drain(bench.central.scan()) }
                await backend.waitUntilAsked("startDiscovery")
            }
            try await group.waitForAll()
        }
    }

    @Test(arguments: [false, true])
    func `sequences of a closed central are finished`(keepsLinks: Bool) async throws {
        try await closed(keepsLinks: keepsLinks) { bench, strap in
            for peripheral in [strap, bench.central.peripheral(FakeBackend.dial)] {
                try await drain(peripheral.valueUpdates())
                try await drain(peripheral.nameChanges())
                try await drain(peripheral.serviceChanges())
                try await drain(peripheral.connectionStateChanges())
                try await drain(peripheral.lastingNotifications(of: [UInt8].self, from: 0x2A19))
            }
            try await drain(bench.central.connectionStateChanges())
            var states: [CentralState] = []
            for await state in bench.central.states { states.append(state) }
            #expect(states == [.unknown])
        }
    }

    @Test(arguments: [false, true])
    func `operations of a closed central report that it is closed`(keepsLinks: Bool) async throws {
        try await closed(keepsLinks: keepsLinks) { bench, strap in
            let central = bench.central
            #expect(central.state == .unknown)
            let dial = central.peripheral(FakeBackend.dial)
            let errors = [
                await outcome { try await central.waitUntilReady() }.error,
                await outcome { try await central.waitUntilReady(timeout: nil) }.error,
                await outcome { _ = try await central.scan().first() }.error,
                await outcome { try await central.connect(dial) }.error,
                await outcome { try await central.connect(strap.address) }.error,
                await outcome { _ = try await strap.read(UInt8.self, from: 0x2A19) }.error,
                await outcome { try await dial.pair() }.error,
                await outcome { _ = try await strap.readRSSI() }.error,
                await outcome { _ = try await central.bonds() }.error,
                await outcome { try await central.forget(dial) }.error,
            ]
            for error in errors {
                #expect(error?.kind == .serviceUnavailable)
                #expect(error?.detail == "the central is closed")
            }
            let asked = bench.backend.asked.state
            #expect(asked.last == "close")
        }
    }

    @Test func `a closed central cannot end a kept link`() async throws {
        try await closed(keepsLinks: true) { _, strap in
            let error = await outcome { try await strap.disconnect() }.error
            #expect(error?.detail == "the central is closed")
        }
        try await closed { _, strap in try await strap.disconnect() }
    }

    @Test func `waiting for Bluetooth fails when the central closes`() async throws {
        let backend = FakeBackend(isPowered: false)
        try await Bench.run(on: backend) { bench in
            async let ready = outcome { try await bench.central.waitUntilReady(timeout: nil) }
            for await state in bench.central.states where state == .poweredOff { break }
            await bench.central.close()
            #expect(await ready.error?.detail == "the central is closed")
        }
    }
}
