import Foundation
public import GattherdDBus
import TestKit

// An adapter.
extension BareObject {
    /// Scans for Low Energy devices until ``stopDiscovery()``.
    public func startDiscovery() async throws(DBusError) {
        try await call("SetDiscoveryFilter", .properties(["Transport": .string("le")]))
        try await call("StartDiscovery")
    }

    public func stopDiscovery() async throws(DBusError) {
        try await call("StopDiscovery")
    }
}

// A device.
extension BareObject {
    /// Reads whether bluetoothd has this object.
    public func isThere() async throws -> Bool {
        try await client.objects()[path]?[interface] != nil
    }

    /// Scans until the device is known.
    public func find() async throws {
        try await client.adapter.startDiscovery()
        try await eventually { try await self.isThere() }
        try await client.adapter.stopDiscovery()
    }

    /// Finds the device, connects it, and waits until its services are known.
    public func findAndConnect() async throws {
        try await find()
        try await connect()
    }

    /// Connects the device, and waits until its services are known.
    public func connect() async throws {
        try await call("Connect")
        try await waitForServices()
    }

    /// Waits until the services are resolved.
    ///
    /// Polls, since signals may be missing.
    public func waitForServices() async throws {
        try await eventually { try await self.isTrue("ServicesResolved") }
    }

    /// Waits until there is no link.
    public func waitForEnd() async throws {
        try await eventually { try await !self.isTrue("Connected") }
    }

    /// The device's first characteristic with this UUID, of four digits or complete.
    public func characteristic(_ uuid: String) async throws -> BareObject {
        let long = uuid.count == 4 ? "0000\(uuid)-0000-1000-8000-00805f9b34fb" : uuid
        let objects = try await client.objects()
        let interface = "org.bluez.GattCharacteristic1"
        for path in objects.keys.sorted() where path.hasPrefix(self.path + "/") {
            guard objects[path]?[interface]?["UUID"]?.string == long else { continue }
            return BareObject(client: client, path: path, interface: interface)
        }
        throw NotThere(what: "\(uuid) of \(path)")
    }

    /// The paths of the device's GATT objects.
    public func attributes() async throws -> [String] {
        try await client.objects().keys.filter { $0.hasPrefix(path + "/service") }.sorted()
    }
}

// A characteristic.
extension BareObject {
    public func read() async throws(DBusError) -> [UInt8] {
        try await call("ReadValue", .properties([:])).first?.octets ?? []
    }

    public func write(_ octets: [UInt8]) async throws(DBusError) {
        try await call("WriteValue", .bytes(octets), .properties(["type": .string("request")]))
    }

    /// Acquires the notification socket.
    public func acquire() async throws -> BareSocket {
        guard case .fileDescriptor(let descriptor) = try await call("AcquireNotify", .properties([:])).first else {
            throw NotThere(what: "the socket of \(path)")
        }
        return BareSocket(descriptor)
    }
}
