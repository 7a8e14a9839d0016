import GattherdDBus
import GattherdSync
import TestKit
import Testing

@testable import GattherdSimulator

/// A simulator and a client on a private bus.
struct BusBench {
    static let device = Bench.device
    let bus: PrivateBus
    let simulator: Simulator
    let client: DBusConnection

    /// Runs `body` while the simulator runs.
    static func with(
        _ yaml: String,
        truthPath: String? = nil,
        _ body: @Sendable (BusBench) async throws -> Void
    ) async throws {
        let bus = try PrivateBus()
        let scenario = try Scenario(yaml, file: "test.yaml")
        let simulator = try Simulator(scenario, on: .address(bus.address), truthPath: truthPath)
        try await withThrowingTaskGroup { group in
            group.addTask { try await simulator.run() }
            #expect(await simulator.waitUntilReady())
            let loop = EventLoop(name: "client")
            defer { loop.stop() }
            let client = try await DBusConnection.open(.address(bus.address), on: loop)
            try await client.addMatch("type='signal',sender='org.bluez'")
            try await client.addMatch("type='signal',member='NameOwnerChanged',arg0='org.bluez'")
            try await body(BusBench(bus: bus, simulator: simulator, client: client))
            await client.close()
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    @discardableResult
    func call(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: DBusValue...
    ) async throws(DBusError)
        -> [DBusValue]
    {
        try await client.call("org.bluez", path, interface, member, arguments, timeout: .seconds(20))
    }

    /// Scans and connects.
    ///
    /// Returns the path of the first characteristic with `uuid`.
    func connect(uuid: String) async throws -> String {
        let signals = await client.signals(matching: DBusSignalFilter())
        try await call(Bench.adapter, InterfaceName.adapter, "StartDiscovery")
        var path = ""
        for await signal in signals {
            if signal.member == "InterfacesAdded", signal.arguments[0].string == Self.device {
                try await call(Self.device, InterfaceName.device, "Connect")
            }
            if signal.member == "InterfacesAdded",
                signal.arguments[1][InterfaceName.characteristic]?["UUID"]?.string?.contains(uuid) == true
            {
                path = signal.arguments[0].string ?? ""
            }
            if signal.arguments.count == 3, signal.arguments[1]["ServicesResolved"]?.bool == true { return path }
        }
        return path
    }

    /// Sends an order by D-Bus.
    @discardableResult
    func control(_ member: String, _ arguments: DBusValue...) async throws(DBusError) -> [DBusValue] {
        try await control(member, arguments)
    }

    @discardableResult
    func control(_ member: String, _ arguments: [DBusValue]) async throws(DBusError) -> [DBusValue] {
        try await client.call(
            ControlInterface.busName,
            ControlInterface.path,
            ControlInterface.name,
            member,
            arguments,
            timeout: .seconds(20)
        )
    }
}
