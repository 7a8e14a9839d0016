import GattherdSync
import Glibc

/// Stream sockets in the file system.
enum UnixSocket {
    /// The problem of a daemon that hangs.
    static let lateness = "the daemon does not answer; see: journalctl -u gattherd -n 20"

    /// Connects to the socket at `path`.
    ///
    /// - Parameters:
    ///   - path: The path of the socket.
    ///   - limit: The limit of each wait for the other process, also of those after this call; `nil` for none.
    /// - Returns: The socket.
    /// - Throws: ``ControlSocketError`` if no process listens there.
    static func connect(_ path: String, within limit: Duration? = nil) throws(ControlSocketError) -> Int32 {
        let address = try address(of: path)
        let socket = try make(path)
        if let limit { setLimit(limit, of: socket) }
        guard unsafe with(address, { unsafe Glibc.connect(socket, $0, $1) }) == 0 else {
            let problem = errno
            close(socket)
            let isNobodyThere = problem == ENOENT || problem == ECONNREFUSED
            throw ControlSocketError(path, explain(problem), isNobodyThere: isNobodyThere, isLate: problem == EAGAIN)
        }
        return socket
    }

    /// Listens at `path` and replaces a socket without a listener.
    ///
    /// - Throws: ``ControlSocketError`` if a process listens there, or the folder is missing or not writable.
    static func listen(_ path: String) throws(ControlSocketError) -> Int32 {
        guard !hasListener(path) else {
            throw ControlSocketError(path, "another daemon listens there; is gattherd running already?")
        }
        if isSocket(path) { unsafe unlink(path) }
        let address = try address(of: path)
        let socket = try make(path, Int32(SOCK_NONBLOCK.rawValue))
        let mask = umask(0o117)
        let code = unsafe with(address) { unsafe bind(socket, $0, $1) }
        umask(mask)
        guard code == 0, Glibc.listen(socket, 8) == 0 else {
            let problem = errno
            close(socket)
            throw ControlSocketError(path, "cannot listen: \(SystemError(problem)); \(remedy(for: problem))")
        }
        return socket
    }

    /// Returns the remedy for the `errno` of a socket that cannot be created.
    static func remedy(for code: Int32) -> String {
        let first = code == EROFS ? "mount the file system writable" : "let this user write there"
        return first + ", or set RUNTIME_DIRECTORY to another directory"
    }

    /// The longest wait for another daemon that may hang.
    private static let listenerLimit = Duration.seconds(1)

    /// True if a process listens at `path`, also if it hangs and has no place for another client.
    private static func hasListener(_ path: String) -> Bool {
        do throws(ControlSocketError) {
            close(try connect(path, within: listenerLimit))
            return true
        } catch {
            return error.isLate
        }
    }

    /// Limits the waits for a free place in the listener's queue, for room to write, and for bytes.
    private static func setLimit(_ limit: Duration, of socket: Int32) {
        let (seconds, attoseconds) = limit.components
        var time = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(socket, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    private static func isSocket(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }

    private static func make(_ path: String, _ flags: Int32 = 0) throws(ControlSocketError) -> Int32 {
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue) | flags, 0)
        guard socket >= 0 else { throw ControlSocketError(path, "no sockets left") }
        return socket
    }

    /// Returns the address of a path.
    ///
    /// - Throws: ``ControlSocketError`` if the path is too long.
    static func address(of path: String) throws(ControlSocketError) -> sockaddr_un {
        var address = sockaddr_un()
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard path.utf8.count < room else {
            throw ControlSocketError(path, "the path has more than \(room - 1) bytes; set RUNTIME_DIRECTORY")
        }
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        return address
    }

    private static func with(
        _ address: sockaddr_un,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        unsafe withUnsafePointer(to: address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    private static func explain(_ code: Int32) -> String {
        switch code {
        case ENOENT, ECONNREFUSED: "no daemon runs with this configuration"
        case EAGAIN: lateness
        case EACCES: "only root and the daemon's user and group may talk to it; run the command with sudo"
        default: SystemError(code).description
        }
    }
}
