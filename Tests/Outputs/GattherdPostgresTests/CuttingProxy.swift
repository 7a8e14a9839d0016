import GattherdSync
import Glibc
import TestKit

/// A proxy on loopback that cuts most connections after a random number of bytes.
final class CuttingProxy: Sendable {
    let port: Int
    private let listener: Int32

    init(to target: Int) throws {
        let port = try Broker.freePort()
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let bound = unsafe Self.withAddress(port) {
            unsafe bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
        guard bound == 0, listen(listener, 16) == 0 else { throw Broker.NotListening() }
        (self.port, self.listener) = (port, listener)
        _ = NamedThread(name: "proxy") {
            while case let client = accept(listener, nil, nil), client >= 0 {
                let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                let code = unsafe Self.withAddress(target) {
                    unsafe connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
                guard code == 0 else {
                    close(client)
                    close(server)
                    continue
                }
                let budget = Locked(Int.random(in: 500...60_000))
                let open = Locked(2)
                for (source, target) in [(client, server), (server, client)] {
                    _ = NamedThread(name: "pump") {
                        Self.pump(source, target, budget)
                        for end in [source, target] { shutdown(end, Int32(SHUT_RDWR)) }
                        let isLast = open.withLock { count in
                            count -= 1
                            return count == 0
                        }
                        if isLast { for end in [source, target] { close(end) } }
                    }
                }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private static func pump(_ source: Int32, _ target: Int32, _ budget: Locked<Int>) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe read(source, &buffer, buffer.count)
            guard count > 0 else { return }
            let allowed = budget.withLock { left in
                let allowed = min(left, count)
                left -= allowed
                return allowed
            }
            guard unsafe send(target, buffer, allowed, Int32(MSG_NOSIGNAL)) == allowed, allowed == count else {
                return
            }
        }
    }

    private static func withAddress(_ port: Int, _ body: (UnsafePointer<sockaddr>) -> Int32) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0) }
        }
    }
}
