import GattherdBluetooth
import GattherdSync
import TestKit
import Testing

@Suite(.timeLimit(.minutes(1))) struct KeepingTests {
    private static let quick: Autoconnect = {
        var autoconnect = Autoconnect.when { _ in true }
        autoconnect.minimumDelay = .milliseconds(1)
        autoconnect.maximumDelay = .milliseconds(1)
        return autoconnect
    }()

    @Test func `a peripheral is kept from the first attempt that succeeds`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            let failure = BluetoothError(.connectionFailed, "no")
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.fail("connect", failure, failure)
            strap.keepConnected(autoconnect: Self.quick)
            for _ in 0..<2 {
                let failed = await changes.wait(for: .disconnected(.connectionFailed))
                #expect(failed?.willReconnect == true)
            }
            await changes.wait(for: .ready)
            bench.backend.drop(FakeBackend.strap)
            await changes.wait(for: .ready)
            try await strap.disconnect()
            #expect(strap.connectionState == .disconnected(.requested))
            #expect(!strap.isReconnecting)
        }
    }

    @Test func `a call that connects a kept peripheral leaves it kept`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            bench.backend.advertise(FakeBackend.strap)
            strap.keepConnected(autoconnect: Self.quick)
            try await strap.connect()
            await changes.wait(for: .ready, orPresent: true)
            bench.backend.drop(FakeBackend.strap)
            #expect(await changes.wait(for: .disconnected(.remote))?.willReconnect == true)
            await changes.wait(for: .ready)
        }
    }

    @Test func `a kept peripheral stays kept after a call that fails or is cancelled`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            bench.backend.advertise(FakeBackend.strap)
            var slow = Autoconnect.whenUnexpected
            (slow.minimumDelay, slow.maximumDelay) = (.seconds(3600), .seconds(3600))
            bench.backend.fail("connect", BluetoothError(.connectionFailed, "no"))
            strap.keepConnected(autoconnect: slow)
            await changes.wait(for: .disconnected(.connectionFailed))
            bench.backend.hang("connect")
            let call = Task { try await strap.connect() }
            await bench.backend.waitUntilAsked("connect 1", times: 2)
            call.cancel()
            _ = await call.result
            await bench.backend.waitUntilAsked("connect 1", times: 3)
            let again = Task { await outcome { try await strap.connect() } }
            await bench.backend.waitUntilAsked("connect 1", times: 4)
            bench.backend.fail("connect", BluetoothError(.connectionFailed, "no"))
            bench.backend.release("connect")
            #expect(await again.value.error?.kind == .connectionFailed)
            #expect(await changes.wait(for: .disconnected(.connectionFailed))?.willReconnect == true)
            await changes.wait(for: .ready)
            #expect(!strap.isReconnecting)
        }
    }

    @Test func `a call with a policy that refuses ends the keeping of a peripheral`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            let failure = BluetoothError(.connectionFailed, "no")
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.fail("connect", failure, failure)
            var slow = Autoconnect.whenUnexpected
            (slow.minimumDelay, slow.maximumDelay) = (.seconds(3600), .seconds(3600))
            strap.keepConnected(autoconnect: slow)
            await changes.wait(for: .disconnected(.connectionFailed))
            _ = await outcome { try await strap.connect(autoconnect: .never) }
            #expect(await changes.wait(for: .disconnected(.connectionFailed))?.willReconnect == false)
            #expect(!strap.isReconnecting)
        }
    }

    @Test func `a peripheral is kept although there is no Bluetooth yet`() async throws {
        let backend = FakeBackend(isPowered: false)
        try await Bench.run(on: backend) { bench in
            for await state in bench.central.states where state == .poweredOff { break }
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            backend.advertise(FakeBackend.strap)
            strap.keepConnected()
            #expect(strap.isReconnecting)
            backend.setPowered(true)
            await changes.wait(for: .ready)
            #expect(!strap.isReconnecting)
        }
    }

    @Test func `a connected peripheral that is kept is connected again after a loss`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let changes = strap.connectionStateChanges()
            strap.keepConnected(autoconnect: Self.quick)
            strap.keepConnected(autoconnect: Self.quick)
            bench.backend.drop(FakeBackend.strap)
            let lost = await changes.wait(for: .disconnected(.remote))
            #expect(lost?.willReconnect == true)
            await changes.wait(for: .ready)
            #expect(bench.backend.asked.state.filter { $0 == "connect 1" }.count == 2)
        }
    }

    @Test func `a policy that refuses an attempt ends the reconnecting`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.fail("connect", BluetoothError(.authentication, "no"))
            strap.keepConnected()
            let failed = await changes.wait(for: .disconnected(.authentication))
            #expect(failed?.willReconnect == false)
        }
    }

    @Test func `the next attempt is known while it is waited for`() async throws {
        try await Bench.run { bench in
            var slow = Self.quick
            slow.minimumDelay = .seconds(Int.max)
            slow.maximumDelay = .seconds(Int.max)
            let strap = try await bench.connected(autoconnect: slow)
            #expect(strap.reconnection == nil)
            bench.backend.fail("connect", BluetoothError(.connectionFailed, "no"))
            bench.backend.drop(FakeBackend.strap)
            try await eventually { strap.reconnection?.attempt == 2 }
            let due = try #require(strap.reconnection?.due)
            #expect(ContinuousClock.now.duration(to: due) > .seconds(3600))
            try await strap.disconnect()
            try await eventually { !strap.isReconnecting }
            #expect(strap.reconnection == nil)
        }
    }

    @Test func `a deadline may be arbitrarily far away`() async throws {
        try await Bench.run({ configuration in
            configuration.operationTimeout = .seconds(Int.max)
            configuration.discoveryTimeout = .seconds(Int.max)
            configuration.disconnectTimeout = .seconds(Int.max)
        }) { bench in
            try await bench.central.waitUntilReady(timeout: .seconds(Int.max))
            async let heard = bench.central.scan(timeout: .seconds(Int.max)).first()
            await bench.backend.waitUntilAsked("startDiscovery")
            bench.backend.advertise(FakeBackend.strap)
            let strap = try await heard.peripheral
            bench.backend.setServices(Bench.table)
            try await strap.connect(timeout: .seconds(Int.max))
            _ = try await strap.readValue(for: 0x2A19)
            try await strap.disconnect()
        }
    }
}
