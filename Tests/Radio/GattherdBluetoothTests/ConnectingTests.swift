import GattherdSync
import TestKit
import Testing

@testable import GattherdBluetooth

@Suite(.timeLimit(.minutes(1))) struct ConnectingTests {
    @Test func `connecting and disconnecting pass through their states`() async throws {
        try await Bench.run { bench in
            let changes = bench.central.connectionStateChanges()
            let strap = try await bench.connected()
            #expect(strap.connectionState == .ready)
            try await strap.disconnect()
            #expect(strap.connectionState == .disconnected(.requested))
            var states: [ConnectionState] = []
            for await change in changes {
                states.append(change.state)
                if change.previous == .disconnecting {
                    #expect("\(change)" == "\(strap): disconnecting -> disconnected (requested)")
                }
                #expect(!change.isUnexpectedDisconnect)
                if change.reason != nil { break }
            }
            #expect(states == [.connecting, .connected, .ready, .disconnecting, .disconnected(.requested)])
            #expect(bench.central.connectionStates == [strap: .disconnected(.requested)])
        }
    }

    @Test(arguments: DisconnectReason.allCases.filter { ![.requested, .detached].contains($0) })
    func `an unexpected disconnect is published with its reason`(reason: DisconnectReason) async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let changes = strap.connectionStateChanges()
            bench.backend.drop(FakeBackend.strap, reason)
            let change = await changes.wait(for: .disconnected(reason))
            #expect(change?.isUnexpectedDisconnect == true)
            #expect(change?.previous == .ready)
            #expect(change?.error?.detail.contains("\(strap.address)") == true)
            let read = await outcome { try await strap.readValue(for: 0x2A19) }
            #expect(read.error?.kind == .notConnected)
            #expect(read.error?.operation == .read)
        }
    }

    @Test func `the loss of bluetoothd ends all links`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let changes = strap.connectionStateChanges()
            bench.backend.say(.unavailable(detail: "gone"))
            await changes.wait(for: .disconnected(.daemonLost))
            #expect(bench.central.state == .resetting)
        }
    }

    @Test func `the end of an older link does not end the new one`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.setConnected(FakeBackend.strap, false)
            // The platform is quicker to connect than to say why the last link ended.
            let changes = strap.connectionStateChanges()
            try await strap.connect()
            #expect(strap.connectionState == .ready)
            bench.backend.say(.linkEnded(FakeBackend.strap, .timedOut))
            bench.backend.drop(FakeBackend.strap, .remote)
            var reasons: [DisconnectReason] = []
            for await change in changes {
                if let reason = change.reason { reasons.append(reason) }
                if change.state == .disconnected(.remote), change.previous == .ready, reasons.count > 1 { break }
            }
            #expect(!reasons.contains(.timedOut))
        }
    }

    @Test(arguments: [
        (BluetoothError.Kind.connectionFailed, DisconnectReason.connectionFailed), (.timedOut, .timedOut),
        (.authentication, .authentication), (.adapterUnavailable, .adapterPoweredOff),
        (.serviceUnavailable, .daemonLost),
    ])
    func `a failed attempt has the reason`(kind: BluetoothError.Kind, reason: DisconnectReason) async throws {
        try await Bench.run { bench in
            bench.backend.fail("connect", BluetoothError(kind, "no"))
            let result = await outcome {
                bench.backend.advertise(FakeBackend.strap)
                try await bench.central.connect(FakeBackend.strap.address)
            }
            #expect(result.error?.kind == kind)
            #expect(result.error?.operation == .connect)
            let strap = try bench.strap
            #expect(strap.connectionState == .disconnected(reason))
            #expect(strap.connectionState.error == result.error && strap.connectionError == result.error)
        }
    }

    @Test func `connecting twice at once is one attempt`() async throws {
        try await Bench.run { bench in
            bench.backend.advertise(FakeBackend.strap)
            let strap = try bench.strap
            async let first: Void = strap.connect()
            async let second: Void = strap.connect()
            _ = try await (first, second)
            #expect(bench.backend.asked.state.filter { $0 == "connect 1" }.count == 1)
        }
    }

    @Test func `an unknown peripheral is found by a scan`() async throws {
        try await Bench.run { bench in
            async let connecting = bench.central.connect(FakeBackend.strap.address)
            await bench.backend.waitUntilAsked("startDiscovery")
            bench.backend.advertise(FakeBackend.dial)
            bench.backend.advertise(FakeBackend.strap)
            let strap = try await connecting
            #expect(strap.connectionState == .ready)
            await bench.backend.waitUntilAsked("stopDiscovery")
        }
    }

    @Test func `a peripheral that is removed during an attempt is searched for by a scan`() async throws {
        try await Bench.run { bench in
            bench.backend.know(FakeBackend.strap)
            bench.backend.hang("connect")
            let strap = try bench.strap
            async let connecting: Void = strap.connect()
            await bench.backend.waitUntilAsked("connect 1")
            bench.backend.remove(FakeBackend.strap)
            bench.backend.release("connect")
            await bench.backend.waitUntilAsked("startDiscovery")
            bench.backend.advertise(FakeBackend.strap)
            try await connecting
            #expect(strap.connectionState == .ready)
        }
    }

    @Test func `a peripheral that is not found in time is a timeout`() async throws {
        try await Bench.run { bench in
            let result = await outcome {
                try await bench.central.connect(FakeBackend.strap.address, timeout: .milliseconds(20))
            }
            #expect(result.error?.kind == .timedOut)
            let strap = try bench.strap
            #expect(strap.connectionState == .disconnected(.timedOut))
        }
    }

    @Test func `disconnecting or cancelling ends an attempt`() async throws {
        try await Bench.run { bench in
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.hang("connect")
            let strap = try bench.strap
            async let first = outcome { try await strap.connect() }
            await bench.backend.waitUntilAsked("connect 1")
            try await strap.disconnect()
            #expect(await first.error?.kind == .cancelled)
            #expect(strap.connectionState == .disconnected(.requested))
            let second = await withTaskGroup(of: Result<Void, BluetoothError>.self) { group in
                group.addTask { await outcome { try await strap.connect() } }
                await bench.backend.waitUntilAsked("connect 1", times: 2)
                group.cancelAll()
                return await group.next()
            }
            #expect(second?.error?.kind == .cancelled)
            #expect(strap.connectionState == .disconnected(.requested))
        }
    }

    @Test func `forget removes the bond although a disconnect is requested meanwhile`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.hang("disconnect")
            async let forgotten = outcome { try await bench.central.forget(strap) }
            await bench.backend.waitUntilAsked("disconnect 1")
            async let disconnected = outcome { try await strap.disconnect() }
            while bench.central.link(strap.id)?.connecting.count != 2 { await Task.yield() }
            bench.backend.release("disconnect")
            #expect(await forgotten.error == nil)
            #expect(await disconnected.error == nil)
            let calls = bench.backend.asked.state.filter { ["disconnect 1", "forget 1"].contains($0) }
            #expect(calls == ["disconnect 1", "forget 1"])
            #expect(strap.connectionState == .disconnected(.requested))
        }
    }

    @Test func `an attempt after a cancelled disconnect ends the dying link and makes another`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.hang("disconnect")
            await withTaskGroup(of: Result<Void, BluetoothError>.self) { group in
                group.addTask { await outcome { try await strap.disconnect() } }
                await bench.backend.waitUntilAsked("disconnect 1")
                group.cancelAll()
                #expect(await group.next()?.error?.kind == .cancelled)
            }
            #expect(strap.connectionState == .disconnecting)
            bench.backend.release("disconnect")
            try await strap.connect()
            #expect(strap.connectionState == .ready)
            #expect(bench.backend.asked.state.filter { $0 == "disconnect 1" }.count == 2)
            #expect(bench.backend.asked.state.filter { $0 == "connect 1" }.count == 2)
        }
    }

    @Test func `streams of connection states begin with the current state`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            var before = strap.connectionStateChanges().makeAsyncIterator()
            #expect(await before.next()?.state == .disconnected(nil))
            #expect(bench.central.connectionStates.isEmpty)
            try await bench.connected()
            for state in [.connecting, .connected, .ready] as [ConnectionState] {
                let change = await before.next()
                #expect(change?.state == state && change?.isInitial == false)
            }
            for changes in [strap.connectionStateChanges(), bench.central.connectionStateChanges()] {
                var changes = changes.makeAsyncIterator()
                let present = await changes.next()
                #expect(present?.peripheral == strap && present?.state == .ready && present?.isInitial == true)
                #expect(present.map { "\($0)" } == "\(strap): ready")
            }
            bench.backend.drop(FakeBackend.strap)
            await strap.connectionStateChanges().wait(for: .disconnected(.remote), orPresent: true)
            for await present in strap.connectionStateChanges() {
                #expect(present.state == .disconnected(.remote) && !present.isUnexpectedDisconnect)
                break
            }
        }
    }

    @Test func `an existing link is adopted`() async throws {
        try await Bench.run { bench in
            bench.backend.know(FakeBackend.strap) { $0.services = [0x180D] }
            bench.backend.setConnected(FakeBackend.strap, true)
            try await eventually { !bench.central.connectedPeripherals().isEmpty }
            #expect(bench.central.connectedPeripherals(services: [0x180F]).isEmpty)
            let strap = try #require(bench.central.connectedPeripherals(services: [0x180D]).first)
            #expect(strap.connectionState == .disconnected(nil))
            try await strap.connect()
            #expect(strap.connectionState == .ready)
            let changes = strap.connectionStateChanges()
            bench.backend.drop(FakeBackend.strap)
            await changes.wait(for: .disconnected(.remote))
        }
    }

    @Test func `connection tasks run in order after each connect, and before ready`() async throws {
        try await Bench.run { bench in
            let log = LatestValue<[String]>([])
            bench.central.addConnectionTask { peripheral in
                #expect(peripheral.connectionState == .connected)
                let level = try await peripheral.read(UInt8.self, from: 0x2A19)
                log.update { $0.append("level \(level)") }
            }
            let strap = try bench.strap
            let second = strap.addConnectionTask { _ in log.update { $0.append("second") } }
            bench.backend.setValue("level", [97])
            try await bench.connected()
            #expect(log.state == ["level 97", "second"])
            try await strap.disconnect()
            bench.central.removeConnectionTask(second)
            try await strap.connect()
            #expect(log.state == ["level 97", "second", "level 97"])
        }
    }

    @Test func `operations of other tasks wait for the connection tasks`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let mayContinue = LatestValue(false)
            strap.addConnectionTask { strap in
                for await isTrue in mayContinue.watch() where isTrue { break }
                async let child: Void = strap.write(UInt8(1), to: 0x2A19)
                try await child
                try await strap.write(UInt8(2), to: 0x2A39)
            }
            bench.backend.setServices(Bench.table)
            bench.backend.advertise(FakeBackend.strap)
            async let connecting: Void = strap.connect()
            await strap.connectionStateChanges().wait(for: .connected, orPresent: true)
            async let level = strap.readValue(for: 0x2A19)
            let operations = try #require(bench.central.link(strap.id)).operations
            try await eventually { operations.count == 1 }
            mayContinue.set(true)
            _ = try await (connecting, level)
            #expect(bench.backend.asked.state.suffix(4) == ["services", "write level", "write control", "read level"])
        }
    }

    @Test func `operations that waited for a connection task fail with it`() async throws {
        struct Mine: Error {}
        try await Bench.run { bench in
            let strap = try bench.strap
            let mayContinue = LatestValue(false)
            let task = strap.addConnectionTask { _ in
                for await isTrue in mayContinue.watch() where isTrue { break }
                throw Mine()
            }
            bench.backend.setServices(Bench.table)
            bench.backend.advertise(FakeBackend.strap)
            async let connecting = outcome { try await strap.connect() }
            await strap.connectionStateChanges().wait(for: .connected, orPresent: true)
            async let level = outcome { try await strap.readValue(for: 0x2A19) }
            let operations = try #require(bench.central.link(strap.id)).operations
            try await eventually { operations.count == 1 }
            mayContinue.set(true)
            _ = await connecting
            let error = await level.error
            #expect(error?.kind == .notConnected)
            #expect(error?.description.contains("Mine") == true)
            bench.central.removeConnectionTask(task)
            try await strap.connect()
            _ = try await strap.readValue(for: 0x2A19)
        }
    }

    @Test func `a connection task that fails fails the connecting`() async throws {
        struct Mine: Error {}
        try await Bench.run { bench in
            bench.central.addConnectionTask { _ in throw Mine() }
            bench.backend.advertise(FakeBackend.strap)
            let strap = try bench.strap
            let result = await outcome { try await strap.connect() }
            #expect(result.error?.operation == .connectionTask)
            #expect(result.error?.detail.contains("Mine") == true)
            #expect(result.error?.underlyingError is Mine)
            #expect(strap.connectionError?.underlyingError is Mine)
            #expect(strap.connectionState == .disconnected(.connectionTaskFailed))
            #expect(bench.backend.asked.state.contains("disconnect 1"))
        }
    }

    @Test func `closing the central keeps or ends links by configuration`() async throws {
        for keepsLinks in [false, true] {
            let backend = FakeBackend()
            try await Bench.run(on: backend, { $0.keepsLinks = keepsLinks }) { bench in
                try await bench.central.waitUntilReady()
                try await bench.connected()
            }
            #expect(backend.asked.state.contains("disconnect 1") != keepsLinks)
            #expect(backend.asked.state.last == "close")
        }
    }

    @Test func `a detached link stays up, without our subscriptions`() async throws {
        let backend = FakeBackend()
        try await Bench.run(on: backend) { bench in
            try await bench.central.waitUntilReady()
            let strap = try await bench.connected(autoconnect: .whenUnexpected)
            try await strap.setNotifyValue(true, for: 0x2A37)
            let values = try await strap.notifications(of: [UInt8].self, from: 0x2A19)
            try await bench.central.detach(strap)
            #expect(strap.connectionState == .disconnected(.detached))
            #expect(backend.subscriptionCount == 0)
            for try await _ in values { Issue.record("a value of a link that is not ours") }
        }
        #expect(!backend.asked.state.contains("disconnect 1"))
    }

    // MARK: - Deadlines, and what connects itself

    @Test(arguments: [Duration.zero, .seconds(-1)])
    func `a failure without a deadline is a Bluetooth error`(timeout: Duration) async throws {
        try await Bench.run { bench in
            bench.backend.advertise(FakeBackend.strap)
            let strap = try bench.strap
            let result = await outcome { try await strap.connect(timeout: timeout) }
            #expect(result.error?.kind == .timedOut)
            #expect(result.error?.description == "connect: \(strap.address) was not ready within 0.0 seconds")
            #expect(!bench.backend.asked.state.contains("connect 1"))
            try await strap.connect()
            try await strap.connect(timeout: timeout)
        }
    }

    @Test func `the connect timeout holds although the platform does not end the attempt`() async throws {
        try await Bench.run { bench in
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.hang("connect")
            let strap = try bench.strap
            let result = await outcome { try await strap.connect(timeout: .milliseconds(500)) }
            #expect(result.error?.kind == .timedOut)
            #expect(strap.connectionState == .disconnected(.timedOut))
        }
    }

    @Test func `the connect timeout covers connection tasks`() async throws {
        try await Bench.run { bench in
            let hasBegun = LatestValue(false)
            bench.central.addConnectionTask { _ in
                hasBegun.set(true)
                try await Task.sleep(for: .seconds(3600))
            }
            bench.backend.advertise(FakeBackend.strap)
            let strap = try bench.strap
            // On a slow machine the first limits may pass before the task begins.
            var (timeout, error) = (Duration.milliseconds(100), BluetoothError?.none)
            while !hasBegun.state {
                timeout *= 2
                error = await outcome { [timeout] in try await strap.connect(timeout: timeout) }.error
                #expect(error?.kind == .timedOut)
            }
            #expect(error?.operation == .connectionTask)
            #expect(strap.connectionState == .disconnected(.connectionTaskFailed))
        }
    }

    @Test func `the connect timeout covers the wait for another attempt`() async throws {
        try await Bench.run { bench in
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.hang("connect")
            let strap = try bench.strap
            async let first = outcome { try await strap.connect() }
            await bench.backend.waitUntilAsked("connect 1")
            let second = await outcome { try await strap.connect(timeout: .milliseconds(20)) }
            #expect(second.error?.kind == .timedOut)
            bench.backend.release("connect")
            #expect(await first.error == nil)
            #expect(strap.connectionState == .ready)
        }
    }

    @Test func `a connection task may connect its own and other peripherals`() async throws {
        try await Bench.run { bench in
            let dial = bench.central.peripheral(FakeBackend.dial)
            bench.backend.know(FakeBackend.dial)
            let strap = try bench.strap
            strap.addConnectionTask { strap in
                try await strap.connect()
                try await dial.connect()
            }
            dial.addConnectionTask { _ in try await strap.connect() }
            try await bench.connected()
            #expect(strap.connectionState == .ready && dial.connectionState == .ready)
            #expect(bench.backend.asked.state.filter { $0 == "connect 1" }.count == 1)
        }
    }

    @Test func `connecting in a connection task whose link is lost is an error, and later is not`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let found = LatestValue<BluetoothError?>(nil)
            let task = strap.addConnectionTask { strap in
                let changes = strap.connectionStateChanges()
                bench.backend.drop(strap.id)
                await changes.wait(for: .disconnected(.remote))
                let error = await outcome { try await strap.connect() }.error
                found.set(error)
            }
            bench.backend.advertise(FakeBackend.strap)
            let result = await outcome { try await strap.connect() }
            #expect(found.state?.kind == .notConnected)
            #expect(result.error?.kind == .notConnected)
            strap.central.removeConnectionTask(task)
            try await strap.connect()
        }
    }

    /// No limit of the wait for the reason of a link's end passes in a test.
    private static let patient: WaitLimits = {
        var waits = WaitLimits()
        waits.endReason = .seconds(3600)
        return waits
    }()

    @Test func `a link that is lost in a connection task has ended when connecting fails, and does not return`()
        async throws
    {
        try await Bench.run(waits: Self.patient) { bench in
            bench.backend.hang("services")
            let strap = try bench.strap
            let changes = strap.connectionStateChanges()
            strap.addConnectionTask { strap in
                bench.backend.setConnected(strap.id, false)
                // The reason comes later than the error.
                _ = try await strap.readValue(for: 0x2A19)
            }
            bench.backend.advertise(FakeBackend.strap)
            async let result = outcome { try await strap.connect(autoconnect: .whenUnexpected) }
            await changes.wait(for: .connected)
            await bench.backend.waitUntilAsked("connect 1")
            try await eventually { bench.central.link(strap.id)?.state.withLock { $0.isEnding } == true }
            bench.backend.say(.linkEnded(strap.id, .timedOut))
            #expect(await result.error?.kind == .notConnected)
            #expect(strap.connectionState == .disconnected(.timedOut) && !strap.isReconnecting)
            let change = await changes.wait(for: .disconnected(.timedOut))
            #expect(change?.willReconnect == false)
            #expect(bench.backend.asked.state.filter { $0 == "connect 1" }.count == 1)
        }
    }

    @Test func `a link whose end has no reason counts as ended by the peripheral`() async throws {
        try await Bench.run { bench in
            bench.backend.hang("services")
            let strap = try bench.strap
            strap.addConnectionTask { strap in
                bench.backend.setConnected(strap.id, false)
                _ = try await strap.readValue(for: 0x2A19)
            }
            bench.backend.advertise(FakeBackend.strap)
            #expect(await outcome { try await strap.connect() }.error?.kind == .notConnected)
            #expect(strap.connectionState == .disconnected(.remote))
        }
    }

    @Test func `a task that outlives its connection task connects normally`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let isLost = LatestValue(false)
            let later = LatestValue<Task<Void, any Error>?>(nil)
            let task = strap.addConnectionTask { strap in
                later.set(
                    Task {
                        for await lost in isLost.watch() where lost { break }
                        try await strap.connect()
                    }
                )
            }
            try await bench.connected()
            bench.central.removeConnectionTask(task)
            try await strap.disconnect()
            isLost.set(true)
            try await later.state?.value
            #expect(strap.connectionState == .ready)
        }
    }

    // MARK: - Pairing

    @Test func `pairing connects when there is no link, and the link belongs to this program`() async throws {
        let backend = FakeBackend()
        try await Bench.run(on: backend) { bench in
            try await bench.central.waitUntilReady()
            backend.advertise(FakeBackend.strap)
            let strap = try bench.strap
            try await strap.pair()
            #expect(strap.connectionState == .ready)
            try await eventually { strap.isPaired }
            #expect(backend.asked.state.suffix(2) == ["connect 1", "pair"])
            try await strap.disconnect()
            #expect(backend.asked.state.contains("disconnect 1"))
            try await strap.pair()
            #expect(strap.connectionState == .disconnected(.requested))
        }
    }

    @Test func `a connection task may pair, and a link that pairing made ends with the central`() async throws {
        let backend = FakeBackend()
        try await Bench.run(on: backend) { bench in
            try await bench.central.waitUntilReady()
            backend.advertise(FakeBackend.strap)
            bench.central.addConnectionTask { try await $0.pair() }
            try await bench.strap.pair()
            #expect(backend.asked.state.filter { $0 == "connect 1" }.count == 1)
        }
        #expect(backend.asked.state.contains("disconnect 1"))
    }

    @Test func `a peripheral that cannot be connected is not paired`() async throws {
        try await Bench.run { bench in
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.fail("connect", BluetoothError(.connectionFailed, "no"))
            let strap = try bench.strap
            let result = await outcome { try await strap.pair() }
            #expect(result.error?.kind == .connectionFailed)
            #expect(!bench.backend.asked.state.contains("pair"))
        }
    }
}
