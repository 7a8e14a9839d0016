import CLinux
import GattherdSync
import Glibc

/// The reason why a program could not be started.
public struct SpawnError: Error, Hashable, Sendable, CustomStringConvertible {
    public let program: String
    public let code: Int32

    public var description: String {
        "cannot start \(program): \(SystemError(code))"
    }
}

/// The exit status of a child process.
public enum ExitStatus: Hashable, Sendable {
    case exited(Int32)
    case signalled(Int32)
}

/// A child process.
///
/// A thread of its own waits for it, so that it never stays a zombie.
///
/// The kernel sends it SIGTERM when this process ends for any reason.
public final class ChildProcess: Sendable {
    /// The target of the child's standard output or error.
    public enum Output: Hashable, Sendable {
        case inherit
        case null
        /// An open file descriptor; the caller closes it.
        case descriptor(Int32)
    }

    public let pid: Int32
    private let status: LatestValue<ExitStatus?>

    /// Starts `program`.
    ///
    /// The child leads a process group of its own: Ctrl-C in a terminal does not signal it.
    ///
    /// - Parameters:
    ///   - program: A path, or a name that is searched in PATH.
    ///   - arguments: The arguments after the name of the program.
    ///   - environment: `NAME=value` pairs, added to the environment of this process.
    ///   - output: The target of standard output.
    ///   - errors: The target of standard error.
    /// - Throws: ``SpawnError`` if the program does not exist or cannot be run.
    public init(
        _ program: String,
        _ arguments: [String] = [],
        environment: [String] = [],
        output: Output = .inherit,
        errors: Output = .inherit
    ) throws(SpawnError) {
        let status = LatestValue<ExitStatus?>(nil)
        let environment = Self.inherited(besides: environment) + environment
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw SpawnError(program: program, code: errno) }
        let (reader, writer) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // The kernel ends the child with the thread that started it: the thread must live as long.
        let hasThread = NamedThread.start(name: "child") {
            let (pid, code) = Self.spawn(program, arguments, environment, output, errors)
            let report = [pid, code]
            _ = unsafe write(writer, report, 8)
            close(writer)
            if code == 0 { status.set(Self.exitStatus(of: pid)) }
        }
        guard hasThread else {
            for end in ends { close(end) }
            throw SpawnError(program: program, code: EAGAIN)
        }
        var report: [Int32] = [0, 0]
        let count = unsafe read(reader, &report, 8)
        close(reader)
        guard count == 8, report[1] == 0 else { throw SpawnError(program: program, code: report[1]) }
        pid = report[0]
        self.status = status
    }

    /// Sends a signal unless the child has exited.
    public func signal(_ number: Int32) {
        if status.state == nil { kill(pid, number) }
    }

    /// Waits until the child exits.
    public func wait() async -> ExitStatus {
        for await status in status.watch() {
            if let status { return status }
        }
        return .signalled(0)
    }

    /// The exit status; `nil` while the child runs.
    public var exitStatus: ExitStatus? { status.state }

    /// Returns the environment of this process without the names in `additions`.
    private static func inherited(besides additions: [String]) -> [String] {
        let names = Set(additions.map { $0.prefix { $0 != "=" } })
        var variables: [String] = []
        var entry: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> = unsafe environ
        while let text = unsafe entry.pointee {
            let variable = unsafe String(cString: text)
            if !names.contains(variable.prefix { $0 != "=" }) { variables.append(variable) }
            unsafe entry += 1
        }
        return variables
    }

    /// Waits until a child exits.
    private static func exitStatus(of pid: pid_t) -> ExitStatus {
        var raw: Int32 = 0
        while unsafe waitpid(pid, &raw, 0) < 0, errno == EINTR {}
        let signal = raw & 0x7F
        return signal == 0 ? .exited(raw >> 8 & 0xFF) : .signalled(signal)
    }
}

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
