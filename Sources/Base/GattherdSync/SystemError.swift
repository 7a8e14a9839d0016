import Glibc

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
