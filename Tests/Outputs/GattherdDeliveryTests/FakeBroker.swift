import CLinux
import GattherdDelivery
import GattherdSync
import Glibc
import TestKit

/// A scripted broker, for behaviour that no real broker shows on request.
final class FakeBroker: Sendable {
    let port: Int
    private let listener: Int32

    /// Listens, and runs `script` for one connection after another, each on a thread of its own.
    ///
    /// - Parameters:
    /// - isNarrow: True if the kernel buffers little unread data.
    /// - identity: The identity for TLS; `nil` for a broker without TLS.
    /// - script: Talks to a client, given the number of earlier connections; its return closes the connection.
    /// - Throws: ``Broker/NotListening`` without a free port.
    init(
        isNarrow: Bool = false,
        identity: Authority.Identity? = nil,
        _ script: @escaping @Sendable (_ client: Client, _ number: Int) -> Void
    ) throws {
        (listener, port) = try Self.listen(isNarrow: isNarrow)
        _ = NamedThread(name: "fake-broker") { [listener] in
            var count = 0
            while case let descriptor = accept(listener, nil, nil), descriptor >= 0 {
                if let client = Client(descriptor, identity) {
                    script(client, count)
                    count += 1
                }
                close(descriptor)
            }
            // Not earlier: another test may receive the same descriptor as soon as it is closed.
            close(listener)
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private static func listen(isNarrow: Bool) throws -> (Int32, Int) {
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
        let length = socklen_t(MemoryLayout<Int32>.size)
        var flag: Int32 = 1
        unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &flag, length)
        if isNarrow {
            // The peer's buffer grows with the size of its segments.
            var (room, segment): (Int32, Int32) = (8192, 1000)
            unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, length)
            unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_MAXSEG, &segment, length)
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
            case unsubscribe = 10
            case ping = 12
            case disconnect = 14
        }

        let kind: Kind?
        let flags: UInt8
        /// The octets after the length.
        let body: [UInt8]
        var version = DeliverySettings.Version.v5

        /// The topic of a PUBLISH; empty if an alias replaces it.
        var topic: String { String(decoding: body.dropFirst(2).prefix(word(0)), as: UTF8.self) }
        /// The packet identifier of a PUBLISH with QoS 1.
        var identifier: [UInt8] { Array(body.dropFirst(2 + word(0)).prefix(2)) }
        /// The properties of a PUBLISH of MQTT 5 with few of them.
        var properties: [UInt8] {
            version == .v5 ? Array(body.dropFirst(afterIdentifier + 1).prefix(Int(body[afterIdentifier]))) : []
        }
        /// The payload of a PUBLISH with few properties.
        var payload: String {
            let start = afterIdentifier + (version == .v5 ? 1 + properties.count : 0)
            return String(decoding: body.dropFirst(start), as: UTF8.self)
        }
        /// The offset after the packet identifier of a PUBLISH.
        private var afterIdentifier: Int { 2 + word(0) + (isAcknowledged ? 2 : 0) }
        /// True for a PUBLISH with QoS 1.
        var isAcknowledged: Bool { kind == .publish && flags & 6 == 2 }

        private func word(_ index: Int) -> Int { Int(body[index]) << 8 | Int(body[index + 1]) }
    }

    /// The broker's end of a connection, with blocking calls.
    struct Client: Sendable {
        private let descriptor: Int32
        private let tls: TLSPeer?
        /// The MQTT version that the client is assumed to use.
        var version = DeliverySettings.Version.v5

        /// Accepts a client; `nil` if the TLS handshake fails.
        init?(_ descriptor: Int32, _ identity: Authority.Identity?) {
            self.descriptor = descriptor
            tls = identity.flatMap { TLSPeer(descriptor, $0) }
            guard identity == nil || tls != nil else { return nil }
        }

        /// The next packet; `nil` if the client has disconnected.
        func next() -> Packet? {
            guard let first = octet(), let length = length() else { return nil }
            guard let body = receive(length) else { return nil }
            return Packet(kind: .init(rawValue: first >> 4), flags: first & 15, body: body, version: version)
        }

        private func receive(_ count: Int) -> [UInt8]? {
            guard count > 0 else { return [] }
            if let tls { return tls.receive(count) }
            var octets = [UInt8](repeating: 0, count: count)
            return unsafe recv(descriptor, &octets, count, Int32(MSG_WAITALL)) == count ? octets : nil
        }

        /// Renews the keys of TLS; false without TLS, or if the client has disconnected.
        func renewKeys() -> Bool { tls?.renewKeys() ?? false }

        func send(_ octets: [UInt8]) {
            if let tls { return tls.send(octets) }
            _ = unsafe Glibc.send(descriptor, octets, octets.count, Int32(MSG_NOSIGNAL))
        }

        /// Sends each octet by itself, with time between them to be read.
        func sendApart(_ octets: [UInt8]) {
            for octet in octets {
                send([octet])
                usleep(50)
            }
        }

        /// Sends two pieces, with time between them to be read.
        func sendApart(_ octets: [UInt8], at cut: Int) {
            send(Array(octets.prefix(cut)))
            usleep(50)
            send(Array(octets.dropFirst(cut)))
        }

        /// Ends sending, and reads until the client has disconnected as well.
        func end() {
            shutdown(descriptor, Int32(SHUT_WR))
            while octet() != nil {}
        }

        /// True if data arrives within this number of milliseconds.
        func hasMore(within milliseconds: Int32) -> Bool {
            var socket = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&socket, 1, milliseconds) > 0
        }

        /// Waits until this number of octets is unread.
        func waitForUnread(_ count: Int32) {
            set(SO_RCVLOWAT, count)
            _ = hasMore(within: -1)
            set(SO_RCVLOWAT, 1)
        }

        private func set(_ option: Int32, _ value: Int32) {
            var value = value
            unsafe setsockopt(descriptor, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size))
        }

        /// Reads CONNECT and answers it.
        func accept(reason: UInt8 = 0, properties: [UInt8] = []) {
            guard next()?.kind == .connect else { return }
            let rest = version == .v5 ? [UInt8(properties.count)] + properties : []
            send([0x20, UInt8(2 + rest.count), 0, reason] + rest)
        }

        /// Answers a PUBLISH with QoS 1, a SUBSCRIBE or UNSUBSCRIBE of one filter, or a PINGREQ.
        func answer(_ packet: Packet, reason: UInt8 = 0) {
            if packet.isAcknowledged { send(acknowledgement(of: packet, reason)) }
            switch packet.kind {
            case .subscribe where version == .v5: send([0x90, 4] + packet.body.prefix(2) + [0, 1])
            case .subscribe: send([0x90, 3] + packet.body.prefix(2) + [1])
            case .unsubscribe where version == .v5: send([0xB0, 4] + packet.body.prefix(2) + [0, 0])
            case .unsubscribe: send([0xB0, 2] + packet.body.prefix(2))
            case .ping: send([0xD0, 0])
            default: break
            }
        }

        /// The acknowledgement of a packet; MQTT 3.1.1 has no reasons.
        func acknowledgement(of packet: Packet, _ reason: UInt8 = 0) -> [UInt8] {
            version == .v5 ? [0x40, 3] + packet.identifier + [reason] : [0x40, 2] + packet.identifier
        }

        /// A PUBLISH, with QoS 1 if it has an identifier.
        func message(
            _ topic: String,
            _ payload: [UInt8],
            identifier: UInt8 = 0,
            responseTopic: String? = nil
        ) -> [UInt8] {
            var body = [0, UInt8(topic.utf8.count)] + Array(topic.utf8)
            if identifier != 0 { body += [0, identifier] }
            let properties: [UInt8] = responseTopic.map { [0x08, 0, UInt8($0.utf8.count)] + Array($0.utf8) } ?? []
            if version == .v5 { body += [UInt8(properties.count)] + properties }
            body += payload
            let length = [
                UInt8(body.count & 0x7F | 0x80), UInt8(body.count >> 7 & 0x7F | 0x80),
                UInt8(body.count >> 14 & 0x7F | 0x80), UInt8(body.count >> 21),
            ]
            return [identifier == 0 ? 0x30 : 0x32] + length + body
        }

        /// A retained PUBLISH of MQTT 5 with QoS 0.
        func retained(_ topic: String, _ payload: [UInt8]) -> [UInt8] {
            let body = [0, UInt8(topic.utf8.count)] + Array(topic.utf8) + [0] + payload
            return [0x31, UInt8(body.count)] + body
        }

        /// Receives this number of readings and answers all other packets meanwhile.
        func readings(_ count: Int) -> [Packet] {
            var readings: [Packet] = []
            while readings.count < count, let packet = next() {
                if packet.isReading { readings.append(packet) } else { answer(packet) }
            }
            return readings
        }

        /// Answers all packets until the client has disconnected, after `observe` has seen them.
        func serve(_ observe: (Packet) -> Void = { _ in }) {
            while let packet = next() {
                observe(packet)
                answer(packet)
            }
        }

        private func octet() -> UInt8? { receive(1)?.first }

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
    /// True for a reading of ``TestLog``.
    var isReading: Bool { kind == .publish && payload.hasPrefix("{\"seq\":") }
    var seq: Int64? { isReading ? Int64(payload.dropFirst(7).prefix { $0.isNumber }) : nil }
}
