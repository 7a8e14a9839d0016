public import GattherdDBus
import TestKit

/// One interface of an object of org.bluez, as one client calls it.
public struct BareObject: Hashable, Sendable {
    public let client: BareClient
    public let path: String
    public let interface: String

    /// It has no such object, or no such property.
    public struct NotThere: Error {
        public let what: String
    }

    /// The same object as another client calls it.
    public func seen(by client: BareClient) -> BareObject {
        BareObject(client: client, path: path, interface: interface)
    }

    @discardableResult
    public func call(
        _ member: String,
        _ arguments: DBusValue...,
        timeout: Duration = .seconds(90)
    ) async throws(DBusError) -> [DBusValue] {
        try await client.call(path, interface, member, arguments, timeout: timeout)
    }

    /// `ok`, or the name and the text of the error, or `no reply` within `timeout`.
    public func outcome(
        _ member: String,
        _ arguments: DBusValue...,
        timeout: Duration = .seconds(90)
    ) async -> String {
        await client.outcome(path, interface, member, arguments, timeout: timeout)
    }

    /// A property, asked for now.
    public func value(_ property: String) async throws(DBusError) -> DBusValue? {
        let arguments: [DBusValue] = [.string(interface), .string(property)]
        return try await client.call(path, "org.freedesktop.DBus.Properties", "Get", arguments).first?.unwrapped
    }

    /// Whether a property is true, asked for now.
    public func isTrue(_ property: String) async throws(DBusError) -> Bool {
        try await value(property)?.bool ?? false
    }

    public func set(_ property: String, _ value: DBusValue) async throws(DBusError) {
        let arguments: [DBusValue] = [.string(interface), .string(property), .variant(value)]
        try await client.call(path, "org.freedesktop.DBus.Properties", "Set", arguments)
    }
}

extension BareObject {
    public static func == (left: BareObject, right: BareObject) -> Bool {
        left.client === right.client && left.path == right.path && left.interface == right.interface
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(path)
        hasher.combine(interface)
    }
}

extension BareClient {
    public var adapter: BareObject {
        BareObject(client: self, path: "/org/bluez/hci0", interface: "org.bluez.Adapter1")
    }

    /// The agents' manager.
    public var agentManager: BareObject {
        BareObject(client: self, path: "/org/bluez", interface: "org.bluez.AgentManager1")
    }

    /// The device with this address, which need not be there.
    public func device(_ address: String) -> BareObject {
        let path = adapter.path + "/dev_" + address.replacing(":", with: "_")
        return BareObject(client: self, path: path, interface: "org.bluez.Device1")
    }

    /// All objects and their interfaces, asked for now.
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
