import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import GattherdLog
import GattherdSync
import TestKit
import Testing

@Suite(.timeLimit(.minutes(1)))
struct PairingTests {
    private static let rejected = "org.bluez.Error.Rejected"

    // MARK: - The agent

    @Test func `an agent without keyboard and display becomes the default agent`() async throws {
        try await PairingStage.run { bench in
            #expect(bench.agents.state.map(\.capability) == ["NoInputNoOutput"])
            let path = try #require(bench.agents.state.first?.path)
            #expect(await bench.stage.fake.arguments["RequestDefaultAgent"] == [.objectPath(path)])
        }
    }

    @Test func `the agent is registered with each new bluetoothd`() async throws {
        let bus = try PrivateBus()
        let central = BlueZCentral(bus: .address(bus.address), log: .silent)
        let events = EventReader(central.events)
        let delegate = AcceptingDelegate()
        await central.answerPairing(with: delegate)
        async let running: Void = central.run()
        for _ in 1...2 {
            let fake = try await FakeBlueZ(bus.address)
            try await events.expect(.available)
            await fake.waitForCall("RegisterAgent")
            await fake.crash()
            try await events.next { if case .unavailable = $0 { true } else { false } }
        }
        await central.close()
        await running
    }

    @Test func `the agent is registered although the task that sets the delegate is cancelled`() async throws {
        try await Stage.run { stage in
            let answering = Task {
                while !Task.isCancelled { await Task.yield() }
                await stage.central.answerPairing(with: AcceptingDelegate())
            }
            answering.cancel()
            await answering.value
            await stage.fake.waitForCall("RegisterAgent")
        }
    }

    @Test func `without a delegate there is no agent`() async throws {
        try await Stage.run { stage in
            #expect(await !stage.fake.asked.contains("RegisterAgent"))
        }
    }

    @Test func `a bluetoothd without agents works except for pairing`() async throws {
        try await Stage.run { stage in
            await stage.central.answerPairing(with: AcceptingDelegate())
            _ = try await stage.connected()
        }
    }

    @Test func `a pairing ends at its deadline although bluetoothd does not register the agent`() async throws {
        var limits = BlueZCentral.Limits()
        limits.operation = .seconds(600)
        try await Stage.run(limits: limits) { stage in
            await stage.fake.hang("RegisterAgent")
            let central = stage.central
            let result = await outcome { () throws(BluetoothError) in
                try await central.pair(Stage.peripheral, by: .justWorks, timeout: .milliseconds(500))
            }
            #expect(result.kind == .timedOut)
            #expect(await !stage.fake.asked.contains("Pair"))
        }
    }

    @Test func `a peripheral that we connect may pair`() async throws {
        try await PairingStage.run { bench in
            _ = try await bench.stage.connected()
            #expect(try await bench.ask("RequestAuthorization").get().isEmpty)
            #expect(try await bench.ask("RequestConfirmation", .uint32(123_456)).get().isEmpty)
            #expect(bench.delegate.asked.withLock { $0 } == [.authorization, .confirmation])
        }
    }

    @Test func `a peripheral that we do not connect is rejected`() async throws {
        try await PairingStage.run { bench in
            await bench.stage.fake.setConnected(true)
            let answer1 = try await bench.ask("RequestAuthorization")
            #expect(answer1.errorName == Self.rejected)
            let answer2 = try await bench.ask("RequestAuthorization", device: "/nowhere")
            #expect(answer2.errorName == Self.rejected)
            #expect(bench.delegate.asked.withLock { $0 }.isEmpty)
        }
    }

    @Test func `a peripheral that pairs after the end of its link is rejected`() async throws {
        try await PairingStage.run { bench in
            _ = try await bench.stage.connected()
            await bench.stage.fake.setConnected(false)
            try await bench.stage.events.expect(.disconnected(Stage.peripheral))
            let answer3 = try await bench.ask("RequestAuthorization")
            #expect(answer3.errorName == Self.rejected)
        }
    }

    @Test func `a peripheral on an adopted link may pair`() async throws {
        try await PairingStage.run { bench in
            await bench.stage.fake.addTable()
            await bench.stage.fake.setConnected(true)
            _ = try await bench.stage.central.characteristics(of: Stage.peripheral, timeout: .seconds(20))
            #expect(try await bench.ask("RequestAuthorization").get().isEmpty)
        }
    }

    @Test func `calls of other clients are rejected`() async throws {
        try await PairingStage.run { bench in
            _ = try await bench.stage.connected()
            let loop = EventLoop(name: "other")
            let other = try await DBusConnection.open(.address(bench.stage.bus.address), on: loop)
            let agent = try #require(bench.agents.state.first)
            await #expect(throws: DBusError.self) {
                let device = [DBusValue.objectPath(FakeBlueZ.device)]
                let interface = "org.bluez.Agent1"
                try await other.call(
                    agent.client,
                    agent.path,
                    interface,
                    "RequestAuthorization",
                    device,
                    timeout: .seconds(20)
                )
            }
            await other.close()
            loop.stop()
            #expect(bench.delegate.asked.withLock { $0 }.isEmpty)
        }
    }

    @Test(
        arguments: [
            ("RequestPasskey", []), ("RequestPinCode", []), ("DisplayPasskey", [.uint32(1), .uint16(0)]),
            ("DisplayPinCode", [.string("1234")]), ("AuthorizeService", [.string("1124")]),
        ] as [(String, [DBusValue])]
    )
    func `requests that need a person are rejected`(member: String, more: [DBusValue]) async throws {
        try await PairingStage.run { bench in
            _ = try await bench.stage.connected()
            let agent = try #require(bench.agents.state.last)
            let arguments = [DBusValue.objectPath(FakeBlueZ.device)] + more
            let answer = await bench.stage.fake.ask(agent.client, agent.path, member, arguments)
            #expect(answer.errorName == Self.rejected)
        }
    }

    @Test(arguments: ["Cancel", "Release"]) func `bluetoothd may cancel a request`(member: String) async throws {
        try await PairingStage.run { bench in
            let agent = try #require(bench.agents.state.last)
            #expect(try await bench.stage.fake.ask(agent.client, agent.path, member, []).get().isEmpty)
        }
    }

    @Test func `invalid calls are answered with an error`() async throws {
        try await PairingStage.run { bench in
            let agent = try #require(bench.agents.state.last)
            for member in ["RequestPasskey", "Explode"] {
                let answer = await bench.stage.fake.ask(agent.client, agent.path, member, [.uint32(7)])
                #expect(answer.errorName == "org.freedesktop.DBus.Error.UnknownMethod")
            }
        }
    }

    // MARK: - Pairing on purpose

    @Test(arguments: [
        (PairingMethod.justWorks, "NoInputNoOutput"), (.compare, "DisplayYesNo"),
        (.passkey(Stage.passkey), "KeyboardOnly"),
    ])
    func `each pairing method has its own agent`(method: PairingMethod, capability: String) async throws {
        try await PairingStage.run { bench in
            await bench.stage.fake.hang("Pair")
            async let pairing = outcome { () throws(BluetoothError) in
                try await bench.stage.central.pair(Stage.peripheral, by: method, timeout: .seconds(20))
            }
            await bench.stage.fake.waitForCall("Pair")
            let agents = bench.agents.state
            #expect(agents.map(\.capability) == ["NoInputNoOutput", capability])
            #expect(agents.first?.client != agents.last?.client)
            if case .passkey = method { #expect(try await bench.ask("RequestPasskey").get() == [.uint32(42)]) }
            await bench.stage.fake.setDevice(["Paired": .boolean(true)])
            try await bench.stage.fake.release()
            #expect(await pairing.kind == nil)
        }
    }

    @Test func `a passkey pairing rejects weaker methods`() async throws {
        try await PairingStage.run { bench in
            _ = try await bench.stage.connected()
            await bench.stage.fake.hang("Pair")
            async let pairing = outcome { () throws(BluetoothError) in
                try await bench.stage.central.pair(
                    Stage.peripheral,
                    by: .passkey(Stage.passkey),
                    timeout: .seconds(20)
                )
            }
            await bench.stage.fake.waitForCall("Pair")
            for agent in 0...1 {
                let answer4 = try await bench.ask("RequestAuthorization", of: agent)
                #expect(answer4.errorName == Self.rejected)
                #expect(try await bench.ask("RequestPinCode", of: agent).get() == [.string("000042")])
            }
            try await bench.stage.fake.release()
            _ = await pairing
        }
    }

    @Test func `a peripheral that pairs without its passkey is removed`() async throws {
        try await PairingStage.run { bench in
            await bench.stage.fake.on("Pair") { fake, call in
                fake.setDevice(["Paired": .boolean(true)])
                try call.reply()
            }
            await bench.stage.fake.on("RemoveDevice") { _, call in try call.reply() }
            let pairing = await outcome { () throws(BluetoothError) in
                try await bench.stage.central.pair(
                    Stage.peripheral,
                    by: .passkey(Stage.passkey),
                    timeout: .seconds(20)
                )
            }
            #expect(pairing.kind == .authentication)
            #expect(await bench.stage.fake.arguments["RemoveDevice"] == [.objectPath(FakeBlueZ.device)])
        }
    }

    @Test(arguments: [false, true])
    func `a peripheral whose pairing reveals its address is removed as well`(isRefused: Bool) async throws {
        try await PairingStage.run { bench in
            await bench.stage.fake.on("Pair") { fake, call in
                // bluetoothd resolves a private address during key distribution; the object keeps its path.
                fake.setDevice(["Address": .string("C0:FF:EE:00:00:77"), "Paired": .boolean(true)])
                try call.reply()
            }
            await bench.stage.fake.on("RemoveDevice") { _, call in
                guard isRefused else { return try call.reply() }
                try call.fail(DBusError(name: "org.bluez.Error.Failed", message: "no"))
            }
            let pairing = await outcome { () throws(BluetoothError) in
                try await bench.stage.central.pair(
                    Stage.peripheral,
                    by: .passkey(Stage.passkey),
                    timeout: .seconds(20)
                )
            }
            #expect(pairing.kind == .authentication)
            #expect(await bench.stage.fake.arguments["RemoveDevice"] == [.objectPath(FakeBlueZ.device)])
            guard case .failure(let error) = pairing else { return }
            #expect(error.detail.contains("could not be removed") == isRefused)
        }
    }

    @Test func `a paired peripheral is not paired again`() async throws {
        try await PairingStage.run { bench in
            await bench.stage.fake.setDevice(["Paired": .boolean(true)])
            try await bench.stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.isPaired } else { false }
            }
            try await bench.stage.central.pair(Stage.peripheral, by: .justWorks, timeout: .seconds(20))
            #expect(await !bench.stage.fake.asked.contains("Pair"))
        }
    }

    @Test func `a peripheral that bluetoothd calls paired already keeps its bond`() async throws {
        try await PairingStage.run { bench in
            // `Paired` is still false.
            await bench.stage.fake.fail("Pair", "AlreadyExists", "Already Paired")
            await bench.stage.fake.on("RemoveDevice") { _, call in try call.reply() }
            try await bench.stage.central.pair(Stage.peripheral, by: .passkey(Stage.passkey), timeout: .seconds(20))
            #expect(await bench.stage.fake.asked.contains("Pair"))
            #expect(await !bench.stage.fake.asked.contains("RemoveDevice"))
        }
    }

    @Test(
        arguments: [
            ("AuthenticationFailed", BluetoothError.Kind.authentication), ("AuthenticationRejected", .authentication),
            ("AuthenticationTimeout", .timedOut), ("AuthenticationCanceled", .cancelled),
            ("ConnectionAttemptFailed", .connectionFailed), ("InProgress", .busy), ("AlreadyExists", nil),
        ] as [(String, BluetoothError.Kind?)]
    )
    func `answers to Pair are mapped to kinds`(name: String, kind: BluetoothError.Kind?) async throws {
        try await PairingStage.run { bench in
            await bench.stage.fake.fail("Pair", name, "")
            let pairing = await outcome { () throws(BluetoothError) in
                try await bench.stage.central.pair(Stage.peripheral, by: .justWorks, timeout: .seconds(20))
            }
            #expect(pairing.kind == kind)
        }
    }

    @Test func `a pairing without an answer is cancelled in bluetoothd`() async throws {
        try await PairingStage.run { bench in
            await bench.stage.fake.hang("Pair")
            let central = bench.stage.central
            // On a slow machine the first limits may pass before the call.
            var (timeout, kind) = (Duration.milliseconds(250), BluetoothError.Kind?.none)
            while await !bench.stage.fake.asked.contains("Pair") {
                timeout *= 2
                kind = await outcome { [timeout] () throws(BluetoothError) in
                    try await central.pair(Stage.peripheral, by: .justWorks, timeout: timeout)
                }.kind
            }
            #expect(kind == .timedOut)
            let client = try #require(bench.agents.state.last?.client)
            // What left the bus has cancelled its pairing.
            for await _ in AsyncStream(unfolding: { try? await bench.stage.fake.connection.nameOwner(client) }) {}
        }
    }

    @Test func `closing the central ends a pairing`() async throws {
        try await PairingStage.run { bench in
            await bench.stage.fake.hang("Pair")
            async let pairing = outcome { () throws(BluetoothError) in
                try await bench.stage.central.pair(Stage.peripheral, by: .justWorks, timeout: .seconds(600))
            }
            await bench.stage.fake.waitForCall("Pair")
            await bench.stage.central.close()
            #expect(await pairing.kind == .serviceUnavailable)
        }
    }

    @Test func `a bluetoothd that does not answer about agents delays nothing`() async throws {
        let bus = try PrivateBus()
        let fake = try await FakeBlueZ(bus.address)
        await fake.hang("RegisterAgent")
        let central = BlueZCentral(bus: .address(bus.address), log: .silent)
        await central.answerPairing(with: AcceptingDelegate())
        async let running: Void = central.run()
        let events = EventReader(central.events)
        try await events.expect(.available)
        try await central.connect(Stage.peripheral, timeout: .seconds(20))
        await central.close()
        await running
        await fake.crash()
    }

    // MARK: - Bonds

    @Test func `bonds are listed`() async throws {
        try await PairingStage.run { bench in
            await bench.stage.fake.setDevice(["Paired": .boolean(true), "Bonded": .boolean(true)])
            await bench.stage.fake.setDevice(["Trusted": .boolean(true)])
            await bench.stage.fake.makeRoundTrip()
            _ = try await bench.stage.connected()
            var bond = Bond(peripheral: Stage.peripheral)
            bond.name = "strap"
            (bond.isPaired, bond.isBonded, bond.isTrusted, bond.isConnected) = (true, true, true, true)
            #expect(try await bench.stage.central.bonds() == [bond])
        }
    }
}
