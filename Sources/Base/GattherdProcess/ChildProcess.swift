import GattherdSync
import Glibc

/// A program could not be started.
public struct SpawnError: Error, Hashable, Sendable, CustomStringConvertible {
    public let program: String
    public let code: Int32

    public var description: String {
        "cannot start \(program): \(unsafe String(cString: strerror(code)))"
    }
}

/// How a child ended.
public enum ExitStatus: Hashable, Sendable {
    case exited(Int32)
    case signalled(Int32)
}

/// A program that we started; it is waited for on a thread of its own, so that it never stays a zombie.
///
/// The kernel sends it SIGTERM when we are gone, however we ended.
public final class ChildProcess: Sendable {
    /// Where the child's standard output or error goes.
    public enum Output: Hashable, Sendable {
        case inherit
        case null
        /// A file descriptor of ours; the caller closes it.
        case descriptor(Int32)
    }

    public let pid: Int32
    private let status: LatestValue<ExitStatus?>

    /// Starts `program`, which is looked for in PATH when it has no slash.
    ///
    /// The child leads a process group of its own, so that a terminal's Ctrl-C reaches only us.
    ///
    /// - Parameters:
    ///   - program: A path, or a name to be found in PATH.
    ///   - arguments: What follows the program's name.
    ///   - environment: `NAME=value` pairs that are added to ours.
    ///   - output: Where its standard output goes.
    ///   - errors: Where its standard error goes.
    /// - Throws: ``SpawnError`` when there is no such program, or it may not be run.
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
        // The thread that starts the child must live as long as it: the kernel ends the child with the thread.
        _ = NamedThread(name: "child") {
            let (pid, code) = Self.spawn(program, arguments, environment, output, errors)
            let report = [pid, code]
            _ = unsafe write(writer, report, 8)
            close(writer)
            if code == 0 { status.set(Self.exitStatus(of: pid)) }
        }
        var report: [Int32] = [0, 0]
        let count = unsafe read(reader, &report, 8)
        close(reader)
        guard count == 8, report[1] == 0 else { throw SpawnError(program: program, code: report[1]) }
        pid = report[0]
        self.status = status
    }

    /// Sends a signal, unless the child has ended.
    public func signal(_ number: Int32) {
        if status.state == nil { kill(pid, number) }
    }

    /// Waits for the end.
    public func wait() async -> ExitStatus {
        for await status in status.watch() {
            if let status { return status }
        }
        return .signalled(0)
    }

    /// How it ended; `nil` while it runs.
    public var exitStatus: ExitStatus? { status.state }

    /// Our environment without the names that `additions` sets.
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

    /// Waits for the child's end.
    private static func exitStatus(of pid: pid_t) -> ExitStatus {
        var raw: Int32 = 0
        while unsafe waitpid(pid, &raw, 0) < 0, errno == EINTR {}
        let signal = raw & 0x7F
        return signal == 0 ? .exited(raw >> 8 & 0xFF) : .signalled(signal)
    }
}
