public import GattherdDBus
import TestKit

/// One interface of an object of org.bluez, with the client that calls it.
public struct BlueZObject: Hashable, Sendable {
    public let client: BlueZClient
    public let path: String
    public let interface: String

    /// The object or property does not exist.
    public struct NotFound: Error {
        public let what: String
    }

    /// The same object with another client.
    public func through(_ client: BlueZClient) -> BlueZObject {
        BlueZObject(client: client, path: path, interface: interface)
    }

    @discardableResult
    public func call(
        _ member: String,
        _ arguments: DBusValue...,
        timeout: Duration = .seconds(90)
    ) async throws(DBusError) -> [DBusValue] {
        try await client.call(path, interface, member, arguments, timeout: timeout)
    }

    /// The outcome of a call: `ok`, the name and text of its error, or `no reply`.
    public func outcome(
        _ member: String,
        _ arguments: DBusValue...,
        timeout: Duration = .seconds(90)
    ) async -> String {
        await client.outcome(path, interface, member, arguments, timeout: timeout)
    }

    /// Reads a property.
    public func value(_ property: String) async throws(DBusError) -> DBusValue? {
        let arguments: [DBusValue] = [.string(interface), .string(property)]
        return try await client.call(path, "org.freedesktop.DBus.Properties", "Get", arguments).first?.unwrapped
    }

    /// Reads a property and returns whether it is true.
    public func isTrue(_ property: String) async throws(DBusError) -> Bool {
        try await value(property)?.bool ?? false
    }

    public func set(_ property: String, _ value: DBusValue) async throws(DBusError) {
        let arguments: [DBusValue] = [.string(interface), .string(property), .variant(value)]
        try await client.call(path, "org.freedesktop.DBus.Properties", "Set", arguments)
    }
}

extension BlueZObject {
    public static func == (left: BlueZObject, right: BlueZObject) -> Bool {
        left.client === right.client && left.path == right.path && left.interface == right.interface
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(path)
        hasher.combine(interface)
    }
}

extension BlueZClient {
    public var adapter: BlueZObject {
        BlueZObject(client: self, path: "/org/bluez/hci0", interface: "org.bluez.Adapter1")
    }

    /// The agents' manager.
    public var agentManager: BlueZObject {
        BlueZObject(client: self, path: "/org/bluez", interface: "org.bluez.AgentManager1")
    }

    /// The device with this address, whether it exists or not.
    public func device(_ address: String) -> BlueZObject {
        let path = adapter.path + "/dev_" + address.replacing(":", with: "_")
        return BlueZObject(client: self, path: path, interface: "org.bluez.Device1")
    }

    /// Reads all objects and their interfaces.
    public func objects() async throws(DBusError) -> [String: [String: DBusValue]] {
        let reply = try await call("/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
        var objects: [String: [String: DBusValue]] = [:]
        for entry in reply.first?.entries ?? [] {
            var interfaces: [String: DBusValue] = [:]
            for interface in entry.value.entries ?? [] { interfaces[interface.key.string ?? ""] = interface.value }
            objects[entry.key.string ?? ""] = interfaces
        }
        return objects
    }
}
