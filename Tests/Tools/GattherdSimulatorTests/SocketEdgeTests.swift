import FoundationEssentials
import GattherdDBus
import GattherdGATT
import GattherdSync
import Glibc
import TestKit
import Testing

@testable import GattherdSimulator

/// Acquired sockets on a real bus.
@Suite(.timeLimit(.minutes(3))) struct SocketEdgeTests {
    private static let uuid = BluetoothUUID(0xFFF1)
    private static let none = DBusValue.properties([Property]())
    private static let pipe = """
        peripherals:
          - name: p
            address: C0:FF:EE:00:00:01
            kind: custom
            connect_latency: 5ms
            resolve_latency: 5ms
            advertise: {interval: 20ms}
            services:
              - {uuid: fff0, characteristics: [{uuid: fff1, properties: [write-without-response, notify]}]}
        """

    /// Acquires a socket.
    ///
    /// Returns the socket and the MTU.
    private func acquire(_ member: String, _ bench: BusBench, _ path: String) async throws -> (DBusDescriptor, Int?) {
        let answer = try await bench.call(path, InterfaceName.characteristic, member, Self.none)
        guard case .fileDescriptor(let descriptor)? = answer.first else {
            throw DBusError(name: "none", message: "no descriptor in \(answer)")
        }
        return (descriptor, answer.last?.int)
    }

    private func send(_ count: Int, from first: Int, _ bench: BusBench) async throws {
        for number in first..<first + count {
            let octets = littleEndian(number, octets: 6)
            try await bench.simulator.perform(.notify("p", characteristic: Self.uuid, octets))
        }
    }

    /// Reads one packet; `nil` at the end.
    private func receive(_ descriptor: DBusDescriptor) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 600)
        let count = unsafe recv(descriptor.rawValue, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : Array(buffer.prefix(count))
    }

    @Test func `an empty notification is an empty packet and not the end of the stream`() async throws {
        try await BusBench.with(Self.pipe) { bench in
            let (socket, mtu) = try await acquire("AcquireNotify", bench, try await bench.connect(uuid: "fff1"))
            #expect(mtu == 517)
            for octets in [[], [7]] as [[UInt8]] {
                try await bench.simulator.perform(.notify("p", characteristic: Self.uuid, octets))
            }
            #expect(receive(socket) == [])
            #expect(receive(socket) == [7])
            #expect(receive(socket) == nil)
        }
    }

    @Test func `a socket holds 278 unread notifications, loses the next ones and then continues`() async throws {
        let folder = try TemporaryFolder()
        try await BusBench.with(Self.pipe, truthPath: folder.file("truth")) { bench in
            let (socket, _) = try await acquire("AcquireNotify", bench, try await bench.connect(uuid: "fff1"))
            try await send(400, from: 0, bench)
            for number in 0..<278 { #expect(receive(socket) == littleEndian(number, octets: 6)) }
            #expect(receive(socket) == nil)
            try await send(1, from: 400, bench)
            #expect(receive(socket) == littleEndian(400, octets: 6))
        }
        let lines = try String(contentsOfFile: folder.file("truth"), encoding: .utf8).split(separator: "\n")
        #expect(lines.count { $0.contains("\"delivered\":true") } == 279)
        #expect(lines.count { $0.contains("\"delivered\":false") } == 122)
    }

    @Test func `packets sent before the link's end can still be read, followed by the end`() async throws {
        try await BusBench.with(Self.pipe) { bench in
            let (socket, _) = try await acquire("AcquireNotify", bench, try await bench.connect(uuid: "fff1"))
            try await send(3, from: 0, bench)
            try await bench.simulator.perform(.drop("p"))
            var request = pollfd(fd: socket.rawValue, events: Int16(POLLIN), revents: 0)
            #expect(unsafe poll(&request, 1, 5000) == 1)
            #expect(request.revents & Int16(POLLIN | POLLHUP) == Int16(POLLIN | POLLHUP))
            for number in 0..<3 { #expect(receive(socket) == littleEndian(number, octets: 6)) }
            for _ in 0..<3 { #expect(receive(socket) == []) }
        }
    }

    @Test func `closing the socket permits the next one`() async throws {
        try await BusBench.with(Self.pipe) { bench in
            let path = try await bench.connect(uuid: "fff1")
            let signals = await bench.client.signals(matching: DBusSignalFilter(path: path))
            var first: (DBusDescriptor, Int?)? = try await acquire("AcquireNotify", bench, path)
            #expect(first != nil)
            first = nil
            for await signal in signals where signal.arguments[1]["NotifyAcquired"]?.bool == false { break }
            _ = try await acquire("AcquireNotify", bench, path)
        }
    }

    @Test func `packets of a write socket reach the peripheral up to the first empty one`() async throws {
        let folder = try TemporaryFolder()
        try await BusBench.with(Self.pipe, truthPath: folder.file("truth")) { bench in
            let path = try await bench.connect(uuid: "fff1")
            let signals = await bench.client.signals(matching: DBusSignalFilter(path: path))
            var socket: (DBusDescriptor, Int?)? = try await acquire("AcquireWrite", bench, path)
            for packet in [[1], [2, 3], [], [4]] as [[UInt8]] {
                #expect(unsafe Glibc.send(socket?.0.rawValue ?? -1, packet, packet.count, 0) == packet.count)
            }
            socket = nil
            for await signal in signals where signal.arguments[1]["WriteAcquired"]?.bool == false { break }
        }
        let lines = try String(contentsOfFile: folder.file("truth"), encoding: .utf8).split(separator: "\n")
        let writes = lines.filter { $0.contains("\"event\":\"write\"") }
        #expect(writes.count == 2)
        #expect(writes.last?.contains("\"hex\":\"0203\"") == true)
    }
}
