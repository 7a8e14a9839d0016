import GattherdSync
public import Glibc

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
public final class ChildProcess: Sendable {
    /// Where the child's standard output or error goes.
    public enum Output: Hashable, Sendable {
        case inherit
        case null
        /// A file descriptor of ours; the caller closes it.
        case descriptor(Int32)
    }

    public let pid: pid_t
    private let status = StateBoard<ExitStatus?>(nil)

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
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe Self.redirect(1, to: output, &actions)
        unsafe Self.redirect(2, to: errors, &actions)
        pid = unsafe try Self.spawn(program, arguments, environment, &actions)
        startWaiting()
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

    private static func redirect(
        _ descriptor: Int32,
        to output: Output,
        _ actions: inout posix_spawn_file_actions_t
    ) {
        switch output {
        case .inherit: break
        case .null: unsafe posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_WRONLY, 0)
        case .descriptor(let source): unsafe posix_spawn_file_actions_adddup2(&actions, source, descriptor)
        }
    }

    private static func spawn(
        _ program: String,
        _ arguments: [String],
        _ environment: [String],
        _ actions: inout posix_spawn_file_actions_t
    ) throws(SpawnError) -> pid_t {
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))
        var noSignals = sigset_t()
        unsafe sigemptyset(&noSignals)
        unsafe posix_spawnattr_setsigmask(&attributes, &noSignals)
        var pid: pid_t = 0
        let code = unsafe withCStrings([program] + arguments) { argv in
            unsafe withCStrings(inherited(besides: environment) + environment) { envp in
                unsafe posix_spawnp(&pid, program, &actions, &attributes, argv, envp)
            }
        }
        guard code == 0 else { throw SpawnError(program: program, code: code) }
        return pid
    }

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

    private func startWaiting() {
        let pid = pid
        let status = status
        _ = NamedThread(name: "wait-\(pid)") {
            var raw: Int32 = 0
            while unsafe waitpid(pid, &raw, 0) < 0, errno == EINTR {}
            let signal = raw & 0x7F
            status.set(signal == 0 ? .exited(raw >> 8 & 0xFF) : .signalled(signal))
        }
    }
}

/// Calls `body` with a null-terminated array of C strings, as `argv` is.
private func withCStrings<Result>(
    _ strings: [String],
    _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    var pointers = unsafe strings.map { unsafe strdup($0) } + [nil]
    defer { unsafe pointers.forEach { unsafe free($0) } }
    return unsafe body(&pointers)
}
