import GattherdSync
import Glibc

/// A dbus-daemon for this process alone, on a socket in a temporary folder.
///
/// Its default configuration has the limits of a system bus and permits everything to every user.
public final class PrivateBus: Sendable {
    /// The reason why a private bus could not be started.
    public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        public let description: String
    }

    /// The D-Bus address, for example `unix:path=/tmp/gattherd-bus-a1B2c3/bus`.
    public let address: String
    private let folder: BusFolder
    private let configurationFile: String?
    private let daemon: ChildProcess

    private static let permissiveConfiguration = """
        <busconfig>
          <type>system</type>
          <listen>unix:tmpdir=/tmp</listen>
          <auth>EXTERNAL</auth>
          <policy context="default">
            <allow user="*"/>
            <allow own="*"/>
            <allow send_destination="*" eavesdrop="true"/>
            <allow eavesdrop="true"/>
          </policy>
        </busconfig>
        """

    /// Starts the daemon and waits until it listens.
    ///
    /// - Parameter configurationFile: A configuration for dbus-daemon that replaces the permissive one.
    /// - Throws: ``Failure`` if dbus-daemon is missing or does not start.
    public init(configurationFile: String? = nil) throws(Failure) {
        folder = try BusFolder()
        self.configurationFile = configurationFile
        (address, daemon) = try Self.start(in: folder, configurationFile)
    }

    private init(in folder: BusFolder, _ configurationFile: String?) throws(Failure) {
        self.folder = folder
        self.configurationFile = configurationFile
        (address, daemon) = try Self.start(in: folder, configurationFile)
    }

    deinit {
        daemon.signal(SIGKILL)
    }

    /// The exit status of the daemon; `nil` while it runs.
    public var exitStatus: ExitStatus? { daemon.exitStatus }

    /// Ends the daemon with SIGTERM and waits for its exit.
    public func stop() async {
        daemon.signal(SIGTERM)
        _ = await daemon.wait()
    }

    /// Kills the daemon, as a crash would, and waits for its exit.
    public func kill() async {
        daemon.signal(SIGKILL)
        _ = await daemon.wait()
    }

    /// Suspends the daemon: connections stay and nothing is answered until ``resume()``.
    public func pause() {
        daemon.signal(SIGSTOP)
    }

    /// Continues a suspended daemon.
    public func resume() {
        daemon.signal(SIGCONT)
    }

    /// Starts a new daemon at the same address, after ``kill()`` or ``stop()``.
    public func restarted() throws(Failure) -> PrivateBus {
        folder.removeSocket()
        return try PrivateBus(in: folder, configurationFile)
    }

    private static func start(
        in folder: BusFolder,
        _ configurationFile: String?
    ) throws(Failure) -> (address: String, daemon: ChildProcess) {
        let address = "unix:path=" + folder.socket
        guard let configurationFile else {
            return (address, try start(try folder.write(permissiveConfiguration), at: address))
        }
        return (address, try start(configurationFile, at: address))
    }

    /// Starts dbus-daemon, which prints its address when it listens.
    private static func start(_ configuration: String, at address: String) throws(Failure) -> ChildProcess {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw .system("cannot create a pipe") }
        let (reader, writer) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(reader) }
        let daemon = try spawn(configuration, address, output: writer)
        var byte: UInt8 = 0
        guard unsafe read(reader, &byte, 1) == 1 else {
            throw Failure(description: "dbus-daemon exited before it listened at \(address)")
        }
        return daemon
    }

    private static func spawn(
        _ configuration: String,
        _ address: String,
        output: Int32
    ) throws(Failure) -> ChildProcess {
        defer { close(output) }
        let arguments = [
            "--config-file=\(configuration)", "--address=\(address)", "--nofork", "--nopidfile", "--nosyslog",
            "--print-address=1",
        ]
        do throws(SpawnError) {
            return try ChildProcess("dbus-daemon", arguments, output: .descriptor(output), errors: .null)
        } catch {
            throw Failure(description: "\(error); install Debian's package dbus-daemon")
        }
    }
}

/// The temporary folder of a bus, with its socket and its configuration.
///
/// Removed with the last bus that uses it.
private final class BusFolder: Sendable {
    private let path: String

    init() throws(PrivateBus.Failure) {
        var template = Array("/tmp/gattherd-bus-XXXXXX".utf8CString)
        guard let made = unsafe mkdtemp(&template) else { throw .system("cannot create a folder in /tmp") }
        path = unsafe String(cString: made)
    }

    deinit {
        removeSocket()
        unsafe unlink(configuration)
        unsafe rmdir(path)
    }

    var socket: String { path + "/bus" }

    private var configuration: String { path + "/bus.conf" }

    func removeSocket() {
        unsafe unlink(socket)
    }

    /// Writes the configuration and returns its path.
    func write(_ text: String) throws(PrivateBus.Failure) -> String {
        let file = unsafe open(configuration, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .system("cannot write \(configuration)") }
        defer { close(file) }
        let bytes = Array(text.utf8)
        guard unsafe Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw .system("cannot write \(configuration)")
        }
        return configuration
    }
}

extension PrivateBus.Failure {
    /// The failed action and the system's reason.
    fileprivate static func system(_ action: String) -> PrivateBus.Failure {
        PrivateBus.Failure(description: "\(action): \(SystemError.current)")
    }
}
