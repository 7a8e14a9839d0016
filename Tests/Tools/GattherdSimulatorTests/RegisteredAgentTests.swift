import GattherdDBus
import GattherdSync
import Testing

@testable import GattherdSimulator

/// Agents on a real bus.
@Suite(.timeLimit(.minutes(3))) struct AgentTests {
    private static let lock = """
        peripherals:
          - name: p
            address: C0:FF:EE:00:00:01
            kind: custom
            passkey: 54062
            connect_latency: 5ms
            resolve_latency: 5ms
            advertise: {interval: 20ms}
            services: [{uuid: fff0, characteristics: [{uuid: fff1, value: '2a', encrypted: true}]}]
        """

    /// Registers an agent that answers `RequestPasskey` with `answer`.
    ///
    /// Returns the calls that it receives.
    private func registerAgent(
        _ bench: BusBench,
        _ answer: Result<UInt32, DBusError>
    ) async throws -> AsyncStream<String> {
        let (calls, post) = AsyncStream.makeStream(of: String.self)
        let client = bench.client
        client.loop.execute {
            client.export("/agent") { call in
                post.yield("\(call.interface).\(call.member)")
                switch answer {
                case .success(let passkey): try? call.reply(.uint32(passkey))
                case .failure(let error): try? call.fail(error)
                }
            }
        }
        let manager = InterfaceName.agentManager
        try await bench.call("/org/bluez", manager, "RegisterAgent", .objectPath("/agent"), .string("KeyboardOnly"))
        return calls
    }

    @Test func `a read asks the agent for the passkey, bonds and is answered`() async throws {
        try await BusBench.with(Self.lock) { bench in
            var calls = try await registerAgent(bench, .success(54_062)).makeAsyncIterator()
            let path = try await bench.connect(uuid: "fff1")
            let value = try await bench.call(
                path,
                InterfaceName.characteristic,
                "ReadValue",
                .properties([Property]())
            )
            #expect(value.first?.bytes == [0x2A])
            #expect(await calls.next() == "org.bluez.Agent1.RequestPasskey")
            let device = try await bench.call(
                BusBench.device,
                InterfaceName.properties,
                "GetAll",
                .string(InterfaceName.device)
            )
            #expect(device.first?["Bonded"]?.bool == true)
        }
    }

    @Test func `an agent's refusal fails Pair`() async throws {
        try await BusBench.with(Self.lock) { bench in
            let refusal = DBusError(name: "org.bluez.Error.Rejected", message: "no")
            _ = try await registerAgent(bench, .failure(refusal))
            _ = try await bench.connect(uuid: "fff1")
            let error = await #expect(throws: DBusError.self) {
                try await bench.call(BusBench.device, InterfaceName.device, "Pair")
            }
            #expect(error == .authenticationFailed)
        }
    }

    @Test func `an agent receives Cancel for a cancelled pairing and Release at the end of bluetoothd`() async throws {
        try await BusBench.with(Self.lock) { bench in
            let (calls, post) = AsyncStream.makeStream(of: String.self)
            let client = bench.client
            client.loop.execute { client.export("/agent") { post.yield($0.member) } }
            try await bench.call(
                "/org/bluez",
                InterfaceName.agentManager,
                "RegisterAgent",
                .objectPath("/agent"),
                .string("KeyboardOnly")
            )
            _ = try await bench.connect(uuid: "fff1")
            var heard = calls.makeAsyncIterator()
            async let pairing = bench.call(BusBench.device, InterfaceName.device, "Pair")
            #expect(await heard.next() == "RequestPasskey")
            try await bench.call(BusBench.device, InterfaceName.device, "CancelPairing")
            #expect(await heard.next() == "Cancel")
            do {
                _ = try await pairing
                Issue.record("the pairing went well")
            } catch {
                #expect(error as? DBusError == .authenticationCanceled)
            }
            try await bench.control("RestartDaemon", .boolean(true), .uint32(50))
            #expect(await heard.next() == "Release")
        }
    }
}
