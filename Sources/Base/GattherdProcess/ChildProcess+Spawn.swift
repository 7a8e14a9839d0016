import CLinux
import Glibc

extension ChildProcess {
    /// Starts a program; the kernel ends it with the calling thread.
    ///
    /// - Returns: The process id, and 0 or an error number.
    static func spawn(
        _ program: String,
        _ arguments: [String],
        _ environment: [String],
        _ output: Output,
        _ errors: Output
    ) -> (pid: Int32, code: Int32) {
        var pid: Int32 = 0
        let code = unsafe withCStrings([program] + arguments) { argv in
            unsafe withCStrings(environment) { envp in
                unsafe clinux_spawn(&pid, program, argv, envp, output.descriptor(1), errors.descriptor(2))
            }
        }
        return (pid, code)
    }
}

extension ChildProcess.Output {
    /// The descriptor that replaces `standard` in the child; negative for `/dev/null`.
    fileprivate func descriptor(_ standard: Int32) -> Int32 {
        switch self {
        case .inherit: standard
        case .null: -1
        case .descriptor(let source): source
        }
    }
}

/// Calls `body` with a null-terminated array of C strings, as `argv` is.
private func withCStrings<Result>(
    _ strings: [String],
    _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    var pointers = unsafe strings.map { unsafe strdup($0) } + [nil]
    defer { unsafe pointers.forEach { unsafe free($0) } }
    return unsafe body(&pointers)
}
