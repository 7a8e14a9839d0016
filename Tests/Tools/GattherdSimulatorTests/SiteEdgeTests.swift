import FoundationEssentials
import GattherdDBus
import GattherdSync
import TestKit
import Testing

@testable import GattherdSimulator

/// Several gateways on buses of their own.
@Suite(.timeLimit(.minutes(3))) struct SiteEdgeTests {
    private static let yaml = """
        timing: quick
        air: {noise: 0}
        gateways: [{name: west, at: [0, 0]}, {name: east, at: [10, 0]}]
        peripherals:
          - {name: p, address: 'C0:FF:EE:00:00:01', kind: number-service, at: [5, 0], advertise: {interval: 20ms}}
        """

    /// Runs `body` with a client on the bus of each gateway while the simulator runs.
    private static func with(
        truthPath: String,
        _ body: @Sendable (Simulator, [DBusConnection]) async throws -> Void
    ) async throws {
        let buses = [try PrivateBus(), try PrivateBus()]
        let addresses = buses.map { DBusAddress.address($0.address) }
        let simulator = try Simulator(try Scenario(yaml, file: "s.yaml"), on: addresses, truthPath: truthPath)
        try await withThrowingTaskGroup { group in
            group.addTask { try await simulator.run() }
            #expect(await simulator.waitUntilReady())
            let loop = EventLoop(name: "clients")
            defer { loop.stop() }
            var clients: [DBusConnection] = []
            for address in addresses { clients.append(try await DBusConnection.open(address, on: loop)) }
            try await body(simulator, clients)
            for client in clients { await client.close() }
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    private func call(
        _ client: DBusConnection,
        _ path: String,
        _ interface: String,
        _ member: String
    ) async throws(DBusError) {
        _ = try await client.call("org.bluez", path, interface, member, [], timeout: .seconds(20))
    }

    /// Scans and connects the peripheral.
    private func connect(_ client: DBusConnection) async throws {
        try await call(client, Bench.adapter, InterfaceName.adapter, "StartDiscovery")
        try await eventually {
            (try? await call(client, Bench.device, InterfaceName.device, "Connect")) != nil
        }
    }

    @Test func `the truth log names the gateway of each link, and orders reach it from every bus`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("truth")
        try await Self.with(truthPath: path) { simulator, clients in
            try await connect(clients[1])
            let device = DBusValue.string("p")
            func control(_ member: String, _ arguments: [DBusValue]) async throws {
                _ = try await clients[0].call(
                    ControlInterface.busName,
                    ControlInterface.path,
                    ControlInterface.name,
                    member,
                    arguments,
                    timeout: .seconds(20)
                )
            }
            try await control("Notify", [device, .string("7a4b0001-999f-4717-b63a-066e06971f59"), .bytes([7])])
            try await control("Drop", [device])
            try await connect(clients[0])
            await #expect(throws: SimulatorOrderError.self) {
                try await simulator.perform(.hang(adapter: "hci0", true), at: "north")
            }
            try await simulator.perform(.restartDaemon(isGraceful: true, downtime: .zero), at: "west")
        }
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        let events = lines.map { line in
            ["connect", "notification", "disconnect"].first { line.contains("\"event\":\"\($0)\"") } ?? ""
        }
        #expect(events == ["connect", "notification", "disconnect", "connect", "disconnect"])
        #expect(lines.prefix(3).allSatisfy { $0.hasSuffix(",\"gateway\":\"east\"}") })
        #expect(lines.dropFirst(3).allSatisfy { $0.hasSuffix(",\"gateway\":\"west\"}") })
    }

    @Test func `a simulator needs a bus for each gateway`() throws {
        let error = #expect(throws: SimulatorError.self) {
            try Simulator(try Scenario(Self.yaml, file: "s.yaml"), on: .system)
        }
        #expect(error?.description == "the scenario needs a bus for each of its 2 gateways, not 1")
    }
}
