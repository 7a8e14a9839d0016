import GattherdSync
import TestKit
import Testing

@testable import GattherdBluetooth

@Suite(.timeLimit(.minutes(1))) struct AutoconnectTests {
    /// A policy with pauses of some milliseconds.
    private static func quick(_ decide: @escaping @Sendable (Autoconnect.Attempt) -> Bool) -> Autoconnect {
        var autoconnect = Autoconnect.when(decide)
        autoconnect.minimumDelay = .milliseconds(1)
        autoconnect.maximumDelay = .milliseconds(2)
        return autoconnect
    }

    @Test func `a lost peripheral is connected again, and its tasks run again`() async throws {
        try await Bench.run { bench in
            let runs = LatestValue(0)
            bench.central.addConnectionTask { _ in runs.update { $0 += 1 } }
            let strap = try await bench.connected(autoconnect: .whenUnexpected)
            let changes = strap.connectionStateChanges()
            bench.backend.drop(FakeBackend.strap, .timedOut)
            let lost = await changes.wait(for: .disconnected(.timedOut))
            #expect(lost?.willReconnect == true)
            await changes.wait(for: .ready)
            #expect(runs.state == 2)
        }
    }

    @Test func `a state change states whether the central reconnects by itself`() async throws {
        try await Bench.run { bench in
            let changes = bench.central.connectionStateChanges()
            let strap = try await bench.connected(autoconnect: Self.quick { _ in true })
            bench.backend.fail("connect", BluetoothError(.connectionFailed, "no"))
            bench.backend.drop(FakeBackend.strap)
            var told: [String] = []
            for await change in changes.prefix(9) { told.append("\(change.state)\(change.isAutomatic ? " auto" : "")") }
            #expect(
                told == [
                    "connecting", "connected", "ready", "disconnected (remote)", "connecting auto",
                    "disconnected (connectionFailed) auto", "connecting auto", "connected auto", "ready auto",
                ]
            )
            try await strap.disconnect()
            for await change in changes where change.reason != nil {
                #expect(!change.isAutomatic)
                break
            }
        }
    }

    @Test func `the policy, the changes and the next attempt have the error of the last one`() async throws {
        try await Bench.run { bench in
            let errors = LatestValue<[BluetoothError?]>([])
            var policy = Autoconnect.when { attempt in
                errors.update { $0.append(attempt.error) }
                return true
            }
            policy.minimumDelay = .seconds(3600)
            policy.maximumDelay = .seconds(3600)
            let strap = try await bench.connected(autoconnect: policy)
            let changes = strap.connectionStateChanges()
            bench.backend.fail("connect", BluetoothError(.connectionFailed, "out of range"))
            bench.backend.drop(FakeBackend.strap, .timedOut)
            let lost = await changes.wait(for: .disconnected(.timedOut))
            #expect(lost?.error?.kind == .timedOut)
            let failed = await changes.wait(for: .disconnected(.connectionFailed))
            #expect(failed?.error?.description == "connect: out of range")
            #expect(errors.state == [lost?.error, failed?.error])
            try await eventually { strap.reconnection?.error == failed?.error && failed?.error != nil }
            #expect(strap.connectionError == failed?.error)
            try await strap.connect()
            #expect(strap.connectionError == nil)
        }
    }

    @Test func `a link lost right after ready is made again, each time`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected(autoconnect: Self.quick { _ in true })
            let changes = strap.connectionStateChanges()
            for _ in 0..<500 {
                bench.backend.drop(FakeBackend.strap)
                await changes.wait(for: .ready)
            }
        }
    }

    @Test func `a call that fails right after the loss of a link does not end reconnecting`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected(autoconnect: Self.quick { _ in true })
            let changes = strap.connectionStateChanges()
            bench.backend.fail("connect", BluetoothError(.connectionFailed, "out of range"))
            // The reason of the loss does not come before the call.
            bench.backend.setConnected(FakeBackend.strap, false)
            let call = await outcome { try await strap.connect() }
            #expect(call.error?.kind == .connectionFailed)
            let failed = await changes.wait(for: .disconnected(.connectionFailed))
            try #require(failed?.willReconnect == true)
            await changes.wait(for: .ready)
        }
    }

    @Test func `a call that is cancelled right after the loss of a link leaves it to the policy`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected(autoconnect: .never)
            bench.backend.hang("connect")
            bench.backend.setConnected(FakeBackend.strap, false)
            let call = Task { try await strap.connect() }
            await bench.backend.waitUntilAsked("connect 1", times: 2)
            call.cancel()
            _ = await call.result
            #expect(!strap.isReconnecting)
            #expect(strap.connectionState == .disconnected(.requested))
        }
    }

    @Test func `a peripheral that is kept while the former policy decides about its loss is connected again`()
        async throws
    {
        try await Bench.run { bench in
            let strap = try await bench.connected(autoconnect: .never)
            let link = try #require(bench.central.link(strap.id))
            link.drop(upTo: .max, bench.central)
            // The policy has decided, and the loss is about to be published.
            link.state.withLock { $0.isEnding = false }
            strap.keepConnected(autoconnect: Self.quick { _ in true })
            await bench.backend.waitUntilAsked("connect 1", times: 2)
        }
    }

    @Test func `the loss of a link does not end a link that is made while the policy decides`() async throws {
        try await Bench.run { bench in
            let policy = Autoconnect.when { attempt in
                let link = bench.central.link(attempt.peripheral.id)
                link?.state.withLock { ($0.number, $0.connection) = (2, .ready) }
                return false
            }
            let strap = try await bench.connected(autoconnect: policy)
            let link = try #require(bench.central.link(strap.id))
            link.drop(upTo: 1, bench.central)
            bench.central.ended(link, .remote)
            #expect(strap.connectionState == .ready)
        }
    }

    @Test func `a peripheral that is kept during a call stays kept when all operations are cancelled`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            let mayEnd = LatestValue(false)
            strap.addConnectionTask { _ in
                // Another task is not cancelled.
                await Task { for await mayEnd in mayEnd.watch() where mayEnd { break } }.value
            }
            bench.backend.advertise(FakeBackend.strap)
            let call = Task { await outcome { try await strap.connect() } }
            await changes.wait(for: .connected)
            var slow = Autoconnect.whenUnexpected
            (slow.minimumDelay, slow.maximumDelay) = (.seconds(3600), .seconds(3600))
            strap.keepConnected(autoconnect: slow)
            let link = try #require(bench.central.link(strap.id))
            // The automatic attempt waits for the end of the call.
            try await eventually { link.connecting.count == 2 }
            bench.central.cancelAllOperations()
            try await eventually { strap.reconnection?.attempt == 2 }
            mayEnd.set(true)
            #expect(await call.value.error?.kind == .cancelled)
            #expect(await changes.wait(for: .disconnected(.requested))?.willReconnect == true)
            #expect(strap.isReconnecting)
        }
    }

    @Test func `the policy sees the reason and the number of each attempt, and may give up`() async throws {
        try await Bench.run { bench in
            let seen = LatestValue<[String]>([])
            let strap = try await bench.connected(
                autoconnect: Self.quick { attempt in
                    seen.update { $0.append("\(attempt.number) \(attempt.reason) \(attempt.peripheral.address)") }
                    return attempt.number < 3
                }
            )
            let refusals = [BluetoothError.Kind.connectionFailed, .timedOut].map { BluetoothError($0, "no") }
            bench.backend.fail("connect", refusals[0], refusals[1])
            let changes = strap.connectionStateChanges()
            bench.backend.drop(FakeBackend.strap, .remote)
            for await seen in seen.watch() where seen.count == 3 { break }
            let address = FakeBackend.strap.address
            #expect(seen.state == ["1 remote \(address)", "2 connectionFailed \(address)", "3 timedOut \(address)"])
            try await eventually { !strap.isReconnecting }
            #expect(strap.connectionState == .disconnected(.timedOut))
            var told: [Bool] = []
            for await change in changes where change.reason != nil {
                told.append(change.willReconnect)
                if told.count == 3 { break }
            }
            #expect(told == [true, true, false])
        }
    }

    @Test func `a requested disconnect is not undone`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected(autoconnect: Self.quick { _ in true })
            try await strap.disconnect()
            #expect(!strap.isReconnecting)
            try await strap.connect(autoconnect: Self.quick { _ in true })
            bench.backend.hang("connect")
            bench.backend.drop(FakeBackend.strap)
            await bench.backend.waitUntilAsked("connect 1", times: 3)
            #expect(strap.isReconnecting)
            try await strap.disconnect()
            try await eventually { !strap.isReconnecting }
            #expect(bench.backend.pending.state == 0)
            bench.backend.release("connect")
            try await bench.central.waitUntilReady()
            #expect(strap.connectionState == .disconnected(.requested))
            #expect(bench.backend.asked.state.filter { $0 == "connect 1" }.count == 3)
        }
    }

    @Test func `a disconnect between two attempts is published`() async throws {
        try await Bench.run { bench in
            var policy = Self.quick { _ in true }
            policy.minimumDelay = .seconds(3600)
            policy.maximumDelay = .seconds(3600)
            let strap = try await bench.connected(autoconnect: policy)
            let changes = strap.connectionStateChanges()
            bench.backend.drop(FakeBackend.strap, .timedOut)
            #expect(await changes.wait(for: .disconnected(.timedOut))?.willReconnect == true)
            try await strap.disconnect()
            #expect(strap.connectionState == .disconnected(.requested))
            #expect(!strap.isReconnecting && strap.reconnection == nil)
            let change = await changes.wait(for: .disconnected(.requested))
            #expect(change?.willReconnect == false && change?.isAutomatic == false)
        }
    }

    @Test func `connecting by hand does not wait for the next attempt`() async throws {
        try await Bench.run { bench in
            var slow = Autoconnect.whenUnexpected
            slow.minimumDelay = .seconds(3600)
            slow.maximumDelay = .seconds(3600)
            let strap = try await bench.connected(autoconnect: slow)
            let changes = strap.connectionStateChanges()
            bench.backend.fail("connect", BluetoothError(.connectionFailed, "no"))
            bench.backend.drop(FakeBackend.strap)
            await changes.wait(for: .disconnected(.connectionFailed))
            try await strap.connect()
            #expect(strap.connectionState == .ready)
            #expect(!strap.isReconnecting)
        }
    }

    @Test func `there are no attempts without an adapter`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected(autoconnect: Self.quick { _ in true })
            let changes = strap.connectionStateChanges()
            bench.backend.setPowered(false)
            bench.backend.drop(FakeBackend.strap, .adapterPoweredOff)
            await changes.wait(for: .disconnected(.adapterPoweredOff))
            for await state in bench.central.states where state == .poweredOff { break }
            #expect(bench.backend.asked.state.filter { $0 == "connect 1" }.count == 1)
            bench.backend.setPowered(true)
            await changes.wait(for: .ready)
        }
    }

    @Test func `an attempt waits for the peripheral's own adapter`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected(autoconnect: Self.quick { _ in true })
            let changes = strap.connectionStateChanges()
            let other = BluetoothAddress(value: 0x00005E_005301)
            bench.backend.say(
                .adapterChanged(AdapterStatus(address: other, name: "hci1", isPowered: true, isDiscovering: false))
            )
            bench.backend.setConnected(FakeBackend.strap, false)
            bench.backend.remove(FakeBackend.strap)
            bench.backend.say(.adapterRemoved(FakeBackend.adapter))
            bench.backend.say(.linkEnded(FakeBackend.strap, .adapterLost))
            await changes.wait(for: .disconnected(.adapterLost))
            try await eventually { strap.reconnection != nil }
            // The other adapter scans meanwhile.
            _ = await outcome { try await bench.central.scan(timeout: .milliseconds(50)).first() }
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.setPowered(true)
            var told: [String] = []
            for await change in changes.prefix(3) { told.append("\(change.state)") }
            #expect(told == ["connecting", "connected", "ready"])
        }
    }

    @Test func `the pauses grow to their limit`() {
        var autoconnect = Autoconnect.whenUnexpected
        autoconnect.minimumDelay = .seconds(1)
        autoconnect.maximumDelay = .seconds(8)
        for _ in 0..<100 {
            #expect(autoconnect.delay(before: 1) == .zero)
            #expect(autoconnect.delay(before: 2) <= .seconds(2))
            #expect((1...100).allSatisfy { autoconnect.delay(before: $0) <= .seconds(8) })
        }
        #expect((0..<100).contains { _ in autoconnect.delay(before: 100) > .seconds(4) })
    }
}
