import GattherdSync
import TestKit
import Testing

@testable import GattherdBluetooth

/// Faults at inconvenient moments: the state is right afterwards, and kept peripherals stay kept.
@Suite(.timeLimit(.minutes(1))) struct FaultTests {
    private static let quick: Autoconnect = {
        var autoconnect = Autoconnect.whenUnexpected
        autoconnect.minimumDelay = .milliseconds(1)
        autoconnect.maximumDelay = .milliseconds(1)
        return autoconnect
    }()

    /// bluetoothd's error of an attempt that another program cancelled.
    private static let foreignCancel = BluetoothError(
        .cancelled,
        "br-connection-canceled (org.bluez.Error.Failed)",
        original: .init(name: "org.bluez.Error.Failed", message: "br-connection-canceled")
    )

    // MARK: - Attempts

    @Test func `an attempt that another program cancels is a failure, and the next one follows`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.fail("connect", Self.foreignCancel, Self.foreignCancel)
            let result = await outcome { try await strap.connect() }
            #expect(result.error?.kind == .connectionFailed)
            strap.keepConnected(autoconnect: Self.quick)
            let failed = await changes.wait(for: .disconnected(.connectionFailed))
            #expect(failed?.error != nil)
            await changes.wait(for: .ready)
        }
    }

    @Test func `a pairing that bluetoothd cancels is refused`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let original = BluetoothError.Original(name: "org.bluez.Error.AuthenticationCanceled", message: "")
            bench.backend.fail("pair", BluetoothError(.cancelled, "Authentication Canceled", original: original))
            let result = await outcome { try await strap.pair() }
            #expect(result.error?.kind == .authentication)
        }
    }

    @Test func `cancelling all operations ends an attempt, and a kept peripheral stays kept`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.hang("connect")
            strap.keepConnected(autoconnect: Self.quick)
            await bench.backend.waitUntilAsked("connect 1")
            bench.central.cancelAllOperations()
            await bench.backend.waitUntilAsked("connect 1", times: 2)
            bench.backend.release("connect")
            await changes.wait(for: .ready)
        }
    }

    @Test func `a peripheral of an adapter that is gone fails at once`() async throws {
        try await Bench.run { bench in
            bench.backend.advertise(FakeBackend.strap)
            let gone = PeripheralID(adapter: BluetoothAddress(value: 7), address: FakeBackend.strap.address)
            let result = await outcome { try await bench.central.peripheral(gone).connect() }
            #expect(result.error?.kind == .adapterUnavailable)
            #expect(!bench.backend.asked.state.contains { $0.hasPrefix("startDiscovery") })
        }
    }

    @Test func `a central ends its attempts to connect before it closes its backend`() async throws {
        let backend = FakeBackend()
        try await Bench.run(on: backend) { bench in
            try await bench.central.waitUntilReady()
            backend.advertise(FakeBackend.strap)
            backend.hang("connect")
            try bench.strap.keepConnected()
            await backend.waitUntilAsked("connect 1")
        }
        #expect(backend.pendingAtClose.state == 0)
    }

    // MARK: - Ends

    @Test func `a central that closes ends a link whose disconnect failed`() async throws {
        let backend = FakeBackend()
        var ended: Peripheral?
        try await Bench.run(on: backend) { bench in
            try await bench.central.waitUntilReady()
            let strap = try await bench.connected()
            backend.fail("disconnect", BluetoothError(.busy, "no"))
            #expect(await outcome { try await strap.disconnect() }.error?.kind == .busy)
            #expect(strap.connectionState == .disconnecting)
            ended = strap
        }
        #expect(backend.asked.state.filter { $0 == "disconnect 1" }.count == 2)
        #expect(ended?.connectionState == .disconnected(.requested))
    }

    @Test func `a disconnect while a connection task runs is a request, not a failure`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            strap.addConnectionTask { _ in try await Task.sleep(for: .seconds(3600)) }
            bench.backend.advertise(FakeBackend.strap)
            async let connecting = outcome { try await strap.connect() }
            await changes.wait(for: .connected)
            try await strap.disconnect()
            #expect(strap.connectionState == .disconnected(.requested))
            #expect(strap.connectionError == nil)
            #expect(await connecting.error?.kind == .cancelled)
        }
    }

    /// BlueZ's errors of operations after the end of the link, and of those in progress.
    private static let lossErrors = [BluetoothError.Kind.notConnected, .att(0x0E), .other].map { kind in
        BluetoothError(kind, "no", original: .init(name: "org.bluez.Error.Failed", message: "no"))
    }

    @Test(arguments: lossErrors)
    func `a loss that an operation of a connection task notices first has its own reason`(
        error: BluetoothError
    ) async throws {
        var waits = WaitLimits()
        waits.endReason = .seconds(3600)
        try await Bench.run(waits: waits) { bench in
            let strap = try bench.strap
            strap.addConnectionTask { _ in throw error }
            bench.backend.advertise(FakeBackend.strap)
            async let result = outcome { try await strap.connect() }
            // The attempt has failed, or waits for the end of its link.
            while !bench.central.connectionChanges.hasListeners, strap.connectionState.reason == nil {
                await Task.yield()
            }
            bench.backend.drop(strap.id, .timedOut)
            #expect(await result.error?.kind == error.kind)
            #expect(strap.connectionState == .disconnected(.timedOut))
            #expect(!bench.backend.asked.state.contains("disconnect 1"))
        }
    }

    @Test func `a link that stays up although a connection task reports its loss is ended`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            strap.addConnectionTask { _ in throw BluetoothError(.notConnected, "Not connected") }
            bench.backend.advertise(FakeBackend.strap)
            #expect(await outcome { try await strap.connect() }.error?.kind == .notConnected)
            #expect(strap.connectionState == .disconnected(.connectionTaskFailed))
            #expect(bench.backend.asked.state.contains("disconnect 1"))
        }
    }

    @Test @MainActor func `a disconnect right after a loss replaces its reason`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected(autoconnect: Self.quick)
            let changes = strap.connectionStateChanges()
            bench.backend.setConnected(FakeBackend.strap, false)
            try await eventually { bench.central.link(strap.id)?.state.withLock { $0.isEnding } == true }
            try await strap.disconnect()
            bench.backend.say(.linkEnded(strap.id, .timedOut))
            #expect(strap.connectionState == .disconnected(.requested) && !strap.isReconnecting)
            for await change in changes where change.reason != nil {
                #expect(!change.willReconnect)
                if change.reason == .requested { break }
            }
        }
    }

    @Test func `a requested disconnect is not automatic`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.hang("connect")
            strap.keepConnected(autoconnect: Self.quick)
            await bench.backend.waitUntilAsked("connect 1")
            try await strap.disconnect()
            #expect(await changes.wait(for: .disconnected(.requested))?.isAutomatic == false)
        }
    }

    @Test func `a detached link is detached, even if the platform refuses to end a subscription`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            for characteristic in [0x2A37, 0x2A19] as [CharacteristicID] {
                try await strap.setNotifyValue(true, for: characteristic)
            }
            bench.backend.fail("unsubscribe", BluetoothError(.timedOut, "no"))
            let result = await outcome { try await bench.central.detach(strap) }
            #expect(result.error?.kind == .timedOut)
            #expect(strap.connectionState == .disconnected(.detached))
            #expect(bench.backend.subscriptionCount == 0)
            try await strap.connect()
            _ = try await strap.readValue(for: 0x2A19)
        }
    }

    @Test func `a link whose disconnect failed can be detached`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.fail("disconnect", BluetoothError(.busy, "no"))
            #expect(await outcome { try await strap.disconnect() }.error?.kind == .busy)
            try await bench.central.detach(strap)
            #expect(strap.connectionState == .disconnected(.detached))
            #expect(bench.backend.asked.state.filter { $0 == "disconnect 1" }.count == 1)
        }
    }

    @Test func `detaching ends all subscriptions at the same time`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            for characteristic in [0x2A37, 0x2A19] as [CharacteristicID] {
                try await strap.setNotifyValue(true, for: characteristic)
            }
            bench.backend.hang("unsubscribe")
            async let detached: Void = bench.central.detach(strap)
            await bench.backend.waitUntilAsked("unsubscribe measurement")
            await bench.backend.waitUntilAsked("unsubscribe level")
            bench.backend.release("unsubscribe")
            try await detached
        }
    }

    @Test func `a link that vanishes while it is adopted is not ready`() async throws {
        try await Bench.run { bench in
            bench.backend.vanishAtNextStatus(FakeBackend.strap) {
                try? await eventually { bench.central.status(FakeBackend.strap) == nil }
            }
            let result = await outcome { try await bench.connected() }
            #expect(result.error != nil)
            let strap = try bench.strap
            #expect(strap.connectionState.reason != nil)
        }
    }

    @Test func `a subscription that has its turn after the end of the central fails`() async throws {
        try await Bench.run({ $0.keepsLinks = true }) { bench in
            let strap = try await bench.connected()
            // The operation began before the central was closed.
            let link = try #require(bench.central.link(strap.id))
            await bench.central.close()
            let subscriber = Subscriber(central: bench.central, link: link)
            let measurement = try #require(Bench.table.first?.characteristics.first)
            let result = await outcome { try await subscriber.listen(to: measurement, .bufferingOldest(1)) }
            #expect(result.error?.detail == "the central is closed")
        }
    }

    @Test func `an attempt to connect that has its turn after the end of the central makes no link`() async throws {
        try await Bench.run { bench in
            bench.backend.advertise(FakeBackend.strap)
            let strap = try bench.strap
            await bench.central.close()
            // The call began before the central was closed.
            let (link, keeper) = bench.central.want(strap, nil)
            let result = await outcome {
                try await bench.central.connect(link, .seconds(3600), isAutomatic: false, keeper)
            }
            #expect(result.error?.detail == "the central is closed")
            #expect(!bench.backend.asked.state.contains("connect 1"))
        }
    }

    // MARK: - Pairing and connection tasks

    @Test func `pairing by another task waits for the connection tasks`() async throws {
        try await Bench.run { bench in
            let (gate, open) = AsyncStream.makeStream(of: Void.self)
            let strap = try bench.strap
            strap.addConnectionTask { strap in
                for await _ in gate { break }
                try await strap.write(UInt8(1), to: 0x2A19)
            }
            let changes = strap.connectionStateChanges()
            async let connected = bench.connected()
            await changes.wait(for: .connected)
            async let paired: Void = strap.pair()
            // A read waits, too; it is asked for later than the pairing.
            async let level = strap.readValue(for: 0x2A19)
            try await eventually { bench.central.link(strap.id)?.operations.count ?? 0 >= 1 }
            #expect(!bench.backend.asked.state.contains("pair"))
            open.finish()
            _ = try await (connected, paired, level)
            let asked = bench.backend.asked.state
            let write = try #require(asked.firstIndex(of: "write level"))
            #expect(try #require(asked.firstIndex(of: "pair")) > write)
        }
    }
}
