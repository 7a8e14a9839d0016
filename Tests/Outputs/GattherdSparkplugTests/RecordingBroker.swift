import GattherdMQTT
import GattherdSync
import Glibc
import TestKit

/// A broker that records all packets of its clients as octets, and sends messages on request.
///
/// The broker grants every subscription and answers pings unless configured otherwise.
final class RecordingBroker: Sendable {
    /// A packet of a client, with the number of its connection.
    struct Packet: Hashable, Sendable {
        let connection: Int
        /// The packet's type and flags (MQTT 3.1.1, section 2.2).
        let first: UInt8
        let body: [UInt8]
        let isVersion5: Bool

        var type: UInt8 { first >> 4 }
        var qos: Int { Int(first >> 1 & 3) }
        var isRetained: Bool { first & 1 == 1 }
    }

    let port: Int
    private let isVersion5: Bool
    private let listener: Int32
    private let received = Locked<[Packet]>([])
    private let count = LatestValue(0)
    /// The socket of the current client.
    private let client = Locked<Int32?>(nil)
    private let answersPings = Locked(true)
    /// The number of subscriptions that are refused next.
    private let refusals = Locked(0)
    /// The octets that follow each CONNACK.
    private let greeting = Locked<[UInt8]>([])

    init(_ version: MQTTVersion) throws {
        isVersion5 = version == .v5
        port = try Broker.freePort()
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port).bigEndian)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let isBound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(listener, generic, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isBound, listen(listener, 16) == 0 else { throw Broker.NotListening() }
        _ = NamedThread(name: "recording-broker") { [weak self, listener] in
            var number = 0
            while case let descriptor = accept(listener, nil, nil), descriptor >= 0 {
                self?.serve(descriptor, number)
                number += 1
                close(descriptor)
            }
            close(listener)
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
    }

    var packets: [Packet] { received.withLock { $0 } }

    /// Waits until the packets satisfy `condition`.
    func wait(until condition: ([Packet]) -> Bool) async {
        for await _ in count.watch() where condition(packets) { return }
    }

    /// Sends a message to the current client with QoS 0.
    func send(_ payload: some Sequence<UInt8>, to topic: String, isRetained: Bool = false) {
        let body = [0, UInt8(topic.utf8.count)] + Array(topic.utf8) + (isVersion5 ? [0] : []) + Array(payload)
        send([isRetained ? 0x31 : 0x30, UInt8(body.count & 0x7F) | 0x80, UInt8(body.count >> 7)] + body)
    }

    func answerPings(_ isAnswering: Bool) {
        answersPings.withLock { $0 = isAnswering }
    }

    /// Refuses the next subscriptions.
    func refuseSubscriptions(_ count: Int) {
        refusals.withLock { $0 = count }
    }

    /// Sends these octets in one piece with each CONNACK.
    func greet(with octets: [UInt8]) {
        greeting.withLock { $0 = octets }
    }

    /// Ends the connection of the current client without a word.
    func drop() {
        client.withLock { $0.map { _ = shutdown($0, Int32(SHUT_RDWR)) } }
    }

    private func send(_ octets: [UInt8]) {
        client.withLock { client in
            guard let client else { return }
            _ = unsafe Glibc.send(client, octets, octets.count, Int32(MSG_NOSIGNAL))
        }
    }

    private func serve(_ descriptor: Int32, _ number: Int) {
        client.withLock { $0 = descriptor }
        while let packet = next(descriptor, number) {
            answer(packet)
            received.withLock { $0.append(packet) }
            count.update { $0 += 1 }
        }
        client.withLock { $0 = nil }
    }

    private func answer(_ packet: Packet) {
        let identifier = Array(packet.body.prefix(2))
        switch packet.type {
        case 1: send((isVersion5 ? [0x20, 3, 0, 0, 0] : [0x20, 2, 0, 0]) + greeting.withLock(\.self))
        case 8:
            let isRefused = refusals.withLock { count in
                count -= 1
                return count >= 0
            }
            let reason: UInt8 = isRefused ? 0x80 : 1
            send(isVersion5 ? [0x90, 4] + identifier + [0, reason] : [0x90, 3] + identifier + [reason])
        case 12: if answersPings.withLock({ $0 }) { send([0xD0, 0]) }
        default: break
        }
    }

    private func next(_ descriptor: Int32, _ number: Int) -> Packet? {
        guard let first = receive(1, descriptor)?.first else { return nil }
        var (length, shift) = (0, 0)
        repeat {
            guard let octet = receive(1, descriptor)?.first else { return nil }
            length |= Int(octet & 0x7F) << shift
            shift = octet & 0x80 == 0 ? -1 : shift + 7
        } while shift >= 0
        guard let body = receive(length, descriptor) else { return nil }
        return Packet(connection: number, first: first, body: body, isVersion5: isVersion5)
    }

    private func receive(_ count: Int, _ descriptor: Int32) -> [UInt8]? {
        guard count > 0 else { return [] }
        var octets = [UInt8](repeating: 0, count: count)
        return unsafe recv(descriptor, &octets, count, Int32(MSG_WAITALL)) == count ? octets : nil
    }
}
