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
