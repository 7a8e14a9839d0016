import Glibc

/// Writes all bytes, also if another program has made the descriptor non-blocking; may block.
///
/// - Returns: False if the descriptor cannot be written any more; `errno` has the reason.
public func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = unsafe rest.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
        switch (count, errno) {
        case (1..., _): rest = rest.dropFirst(count)
        case (..<0, EINTR): continue
        case (..<0, EAGAIN):
            var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            _ = unsafe poll(&room, 1, -1)
        case (0, _):
            errno = ENOSPC
            return false
        default: return false
        }
    }
    return true
}

/// Reads a regular file of at most `limit` bytes; never blocks, as a pipe would.
///
/// - Throws: ``SystemError``: `EINVAL` for a pipe or a device, `EFBIG` for a longer file.
package func readFile(_ path: String, limit: Int) throws(SystemError) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .current }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .current }
    guard status.st_mode & S_IFMT != S_IFDIR else { throw SystemError(EISDIR) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw SystemError(EINVAL) }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: min(limit + 1, 65_536))
    while bytes.count <= limit {
        let count = unsafe read(descriptor, &block, block.count)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw .current }
        guard count > 0 else { return bytes }
        bytes += block.prefix(count)
    }
    throw SystemError(EFBIG)
}

/// A failed system call: the value of `errno`, and its message.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    package let code: Int32

    package init(_ code: Int32) {
        self.code = code
    }

    /// The error of the thread's last failed system call.
    package static var current: Self { Self(errno) }

    /// The system's message, such as `No such file or directory`.
    package var description: String { unsafe String(cString: strerror(code)) }
}

extension String {
    /// The folder of a path: `/` for a name in the root, `.` for a bare name.
    package var parentFolder: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }
}
