import Foundation
public import GattherdDBus
import Glibc
import TestKit

// An adapter.
extension BlueZObject {
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
extension BlueZObject {
    /// Reads whether bluetoothd has this object.
    public func exists() async throws -> Bool {
        try await client.objects()[path]?[interface] != nil
    }

    /// Scans until the device is known.
    public func find() async throws {
        try await client.adapter.startDiscovery()
        try await eventually { try await self.exists() }
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
    public func characteristic(_ uuid: String) async throws -> BlueZObject {
        let long = uuid.count == 4 ? "0000\(uuid)-0000-1000-8000-00805f9b34fb" : uuid
        let objects = try await client.objects()
        let interface = "org.bluez.GattCharacteristic1"
        for path in objects.keys.sorted() where path.hasPrefix(self.path + "/") {
            guard objects[path]?[interface]?["UUID"]?.string == long else { continue }
            return BlueZObject(client: client, path: path, interface: interface)
        }
        throw NotFound(what: "\(uuid) of \(path)")
    }

    /// The paths of the device's GATT objects.
    public func attributes() async throws -> [String] {
        try await client.objects().keys.filter { $0.hasPrefix(path + "/service") }.sorted()
    }
}

// A characteristic.
extension BlueZObject {
    public func read() async throws(DBusError) -> [UInt8] {
        try await call("ReadValue", .properties([:])).first?.bytes ?? []
    }

    public func write(_ octets: [UInt8]) async throws(DBusError) {
        try await call("WriteValue", .bytes(octets), .properties(["type": .string("request")]))
    }

    /// Acquires the notification socket.
    public func acquire() async throws -> NotifySocket {
        guard case .fileDescriptor(let descriptor) = try await call("AcquireNotify", .properties([:])).first else {
            throw NotFound(what: "the socket of \(path)")
        }
        return NotifySocket(descriptor)
    }
}

/// The socket of an `AcquireNotify`, read with plain system calls.
public struct NotifySocket: Sendable {
    private let descriptor: DBusDescriptor

    init(_ descriptor: DBusDescriptor) {
        self.descriptor = descriptor
    }

    /// Reads the available packets, at most `limit`.
    ///
    /// Empty packets are included. At the end of the socket, reads return empty packets endlessly.
    public func read(limit: Int = 10_000) -> [[UInt8]] {
        var packets: [[UInt8]] = []
        while packets.count < limit, let packet = next() { packets.append(packet) }
        return packets
    }

    /// Reads one packet; nil if none is available.
    public func next() -> [UInt8]? {
        unsafe withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { buffer in
            let count = unsafe recv(descriptor.rawValue, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            guard count >= 0 else { return nil }
            return unsafe Array(buffer.prefix(count))
        }
    }

    /// True if bluetoothd has closed its end.
    ///
    /// Earlier packets can still be read.
    public var isHungUp: Bool {
        var state = pollfd(fd: descriptor.rawValue, events: 0, revents: 0)
        return unsafe poll(&state, 1, 0) == 1 && state.revents & Int16(POLLHUP) != 0
    }

    public func close() {
        Glibc.close(descriptor.release())
    }
}
