import GattherdSync
import Glibc
import TestKit

/// A server that speaks as much of PostgreSQL's protocol as it needs to trouble its clients.
final class HostileServer: Sendable {
    enum Answer: Sendable {
        /// Rows without end.
        case endlessRows
        /// One row of nearly 1 GiB.
        case endlessRow
        /// The end of the statement, but not that the server is ready for the next one.
        case unfinished
        /// A complete answer without rows, with notifications that the client has not asked for.
        case notifications
        /// Sends nothing, not even an answer to the first message.
        case silent
    }

    let port: Int
    private let listener: Int32
    private let connections = Locked<[Int32]>([])

    /// The connections so far, those for cancelling included.
    var count: Int { connections.withLock(\.count) }

    init(_ answer: Answer) throws {
        let port = try Broker.freePort()
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard bound == 0, listen(listener, 16) == 0 else { throw Broker.NotListening() }
        (self.port, self.listener) = (port, listener)
        _ = NamedThread(name: "hostile") { [connections] in
            while case let client = accept(listener, nil, nil), client >= 0 {
                connections.withLock { $0.append(client) }
                _ = NamedThread(name: "hostile") { Self.serve(client, answer) }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        for client in connections.withLock({ $0 }) { close(client) }
    }

    /// Answers a start and a statement.
    ///
    /// Requests to cancel get no answer, and their connection stays open.
    private static func serve(_ client: Int32, _ answer: Answer) {
        guard answer != .silent, var start = receive(client) else { return }
        // A request for TLS is 8 bytes long.
        if start.count == 8 {
            guard reply(client, Array("N".utf8)), let next = receive(client) else { return }
            start = next
        }
        guard start.count > 16 else { return }
        let ready = message("Z", Array("I".utf8))
        guard reply(client, message("R", [0, 0, 0, 0]) + message("K", [0, 0, 0, 1, 0, 0, 0, 2]) + ready) else { return }
        guard receive(client) != nil else { return }
        let head = message("1") + message("2") + message("T", [0, 1] + Array("x\0".utf8) + description)
        let end = message("C", Array("SELECT 0\0".utf8))
        let row = message("D", [0, 1, 0, 0, 4, 0] + Array(repeating: 65, count: 1024))
        switch answer {
        case .silent: return
        case .unfinished: _ = reply(client, head + end)
        case .notifications:
            let notification = message("A", [0, 0, 0, 1] + Array("channel\0payload\0".utf8))
            _ = reply(client, head + Array(repeating: notification, count: 100).flatMap(\.self) + end + ready)
        case .endlessRow:
            guard reply(client, head + [68, 63, 255, 255, 255, 0, 1, 63, 255, 255, 0]) else { return }
            let part = [UInt8](repeating: 65, count: 65_536)
            while reply(client, part) {}
        case .endlessRows:
            guard reply(client, head) else { return }
            let rows = Array(repeating: row, count: 64).flatMap(\.self)
            while reply(client, rows) {}
        }
    }

    /// The description of a column of texts that belongs to no table.
    private static let description: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 255, 255, 255, 255, 255, 255, 0, 0]

    private static func message(_ type: Character, _ body: [UInt8] = []) -> [UInt8] {
        let length = UInt32(body.count + 4)
        return Array(type.utf8) + (0..<4).map { UInt8(truncatingIfNeeded: length >> (24 - 8 * $0)) } + body
    }

    private static func receive(_ client: Int32) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = unsafe read(client, &buffer, buffer.count)
        return count > 0 ? Array(buffer.prefix(count)) : nil
    }

    private static func reply(_ client: Int32, _ bytes: [UInt8]) -> Bool {
        unsafe send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }
}
