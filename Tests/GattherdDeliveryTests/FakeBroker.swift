import CLinux
import GattherdSync
import Glibc
import TestKit

/// A broker that does what a script says, for what no real one can be made to do.
final class FakeBroker: Sendable {
    let port: Int
    private let listener: Int32

    /// Listens, and runs `script` for one connection after another, each on a thread of the broker's.
    ///
    /// - Parameter script: Speaks with a client; the connection is closed when it returns. It is told how many came before.
    /// - Throws: ``Broker/NotListening`` without a free port.
    init(_ script: @escaping @Sendable (_ client: Client, _ number: Int) -> Void) throws {
        (listener, port) = try Self.listen()
        _ = NamedThread(name: "fake-broker") { [listener] in
            var count = 0
            while case let descriptor = accept(listener, nil, nil), descriptor >= 0 {
                script(Client(descriptor), count)
                close(descriptor)
                count += 1
            }
            // Not before: its number may be another test's as soon as it is closed.
            close(listener)
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private static func listen() throws -> (Int32, Int) {
        let port = try Broker.freePort()
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port).bigEndian)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let isBound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(descriptor, generic, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isBound, Glibc.listen(descriptor, 16) == 0 else { throw Broker.NotListening() }
        return (descriptor, port)
    }
}

extension FakeBroker {
    /// A control packet (MQTT 5, "MQTT Control Packet format").
    struct Packet {
        enum Kind: UInt8 {
            case connect = 1
            case publish = 3
            case acknowledgement = 4
            case subscribe = 8
            case ping = 12
            case disconnect = 14
        }

        let kind: Kind?
        let flags: UInt8
        /// What follows the length.
        let body: [UInt8]

        /// Of a PUBLISH; empty when an alias stands for it.
        var topic: String { String(decoding: body.dropFirst(2).prefix(word(0)), as: UTF8.self) }
        /// Of a PUBLISH with QoS 1.
        var identifier: [UInt8] { Array(body.dropFirst(2 + word(0)).prefix(2)) }
        /// Of a PUBLISH with QoS 1 of MQTT 5 with few properties.
        var properties: [UInt8] { Array(body.dropFirst(5 + word(0)).prefix(Int(body[4 + word(0)]))) }
        /// Of a PUBLISH with QoS 1 of MQTT 5 with few properties.
        var payload: String { String(decoding: body.dropFirst(5 + word(0) + properties.count), as: UTF8.self) }

        private func word(_ index: Int) -> Int { Int(body[index]) << 8 | Int(body[index + 1]) }
    }

    /// The other end of a connection; everything waits.
    struct Client: Sendable {
        private let descriptor: Int32

        init(_ descriptor: Int32) {
            self.descriptor = descriptor
        }

        /// The next packet; `nil` when the client has gone.
        func next() -> Packet? {
            guard let first = octet(), let length = length() else { return nil }
            var body: [UInt8] = []
            while body.count < length {
                guard let octet = octet() else { return nil }
                body.append(octet)
            }
            return Packet(kind: .init(rawValue: first >> 4), flags: first & 15, body: body)
        }

        func send(_ octets: [UInt8]) {
            _ = unsafe Glibc.send(descriptor, octets, octets.count, Int32(MSG_NOSIGNAL))
        }

        /// Takes CONNECT and answers it (MQTT 5).
        func accept(reason: UInt8 = 0, properties: [UInt8] = []) {
            guard next()?.kind == .connect else { return }
            send([0x20, UInt8(3 + properties.count), 0, reason, UInt8(properties.count)] + properties)
        }

        /// Answers a PUBLISH with QoS 1, a SUBSCRIBE of one filter, a PING.
        func answer(_ packet: Packet, reason: UInt8 = 0) {
            switch packet.kind {
            case .publish where packet.flags & 6 == 2: send([0x40, 3] + packet.identifier + [reason])
            case .subscribe: send([0x90, 4] + packet.body.prefix(2) + [0, 1])
            case .ping: send([0xD0, 0])
            default: break
            }
        }

        private func octet() -> UInt8? {
            var octet: UInt8 = 0
            return unsafe recv(descriptor, &octet, 1, 0) == 1 ? octet : nil
        }

        private func length() -> Int? {
            var (length, shift) = (0, 0)
            while let octet = octet() {
                length |= Int(octet & 0x7F) << shift
                shift += 7
                if octet & 0x80 == 0 { return length }
            }
            return nil
        }
    }
}

extension FakeBroker.Packet {
    /// A reading of ``TestLog``.
    var isReading: Bool { kind == .publish && payload.hasPrefix("{\"seq\":") }
    var seq: Int64? { isReading ? Int64(payload.dropFirst(7).prefix { $0.isNumber }) : nil }
}
