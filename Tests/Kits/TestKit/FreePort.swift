import GattherdSync
import Glibc

extension Broker {
    /// Returns a free port below the kernel's ephemeral range, which no other test gets.
    ///
    /// No outgoing connection of another test can take it while nothing listens there.
    public static func freePort() throws -> Int {
        for _ in 0..<1000 {
            let port = in_port_t.random(in: 20_000..<32_000)
            if ReservedPorts.insert(port), isFree(port) { return Int(port) }
        }
        throw NotListening()
    }

    private static func isFree(_ port: in_port_t) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(descriptor, generic, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}

/// The ports that this process has chosen.
///
/// Several test processes run side by side, and a chosen port may have no listener yet. So a process locks one byte of
/// a common file for each of its ports. The kernel releases the locks when the process ends.
private enum ReservedPorts {
    private static let ports = Locked<Set<in_port_t>>([])
    /// The descriptor of the common file; if it is negative, only the tests of this process get different ports.
    private static let file = unsafe open("/tmp/gattherd-test-ports-\(getuid())", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)

    /// Reserves a port until the end of this process; returns false if this process or another one has it.
    static func insert(_ port: in_port_t) -> Bool {
        guard ports.withLock({ $0.insert(port).inserted }) else { return false }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        (lock.l_start, lock.l_len) = (off_t(port), 1)
        return unsafe file < 0 || fcntl(file, F_SETLK, &lock) == 0
    }
}
