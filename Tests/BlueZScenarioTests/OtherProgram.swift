import GattherdDBus
import GattherdSync
import TestKit

/// Another client of org.bluez on the same host, which knows nothing of gattherd.
final class OtherProgram: Sendable {
    private let loop = EventLoop(name: "other")
    private let connection: DBusConnection

    private static let adapter = "/org/bluez/hci0"

    init(on bus: String) async throws {
        connection = try await DBusConnection.open(.address(bus), on: loop)
    }

    deinit {
        loop.stop()
    }

    /// Looks for the peripheral, and connects it.
    func connect(_ address: String) async throws {
        try await call(Self.adapter, "org.bluez.Adapter1", "SetDiscoveryFilter", [.properties([:])])
        try await call(Self.adapter, "org.bluez.Adapter1", "StartDiscovery")
        try await eventually {
            (try? await self.call(Self.path(address), "org.bluez.Device1", "Connect")) != nil
        }
        try await call(Self.adapter, "org.bluez.Adapter1", "StopDiscovery")
    }

    func disconnect(_ address: String) async throws {
        try await call(Self.path(address), "org.bluez.Device1", "Disconnect")
    }

    private static func path(_ address: String) -> String {
        adapter + "/dev_" + address.replacing(":", with: "_")
    }

    @discardableResult
    private func call(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue] = []
    ) async throws -> [DBusValue] {
        try await connection.call("org.bluez", path, interface, member, arguments, timeout: .seconds(60))
    }
}
