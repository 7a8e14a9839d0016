import GattherdProcess
import Glibc

/// A dbus-daemon of the test's own, with the limits of a system bus.
public final class PrivateBus: Sendable {
    /// Where it listens, in D-Bus's syntax.
    public let address: String
    private let folder: TemporaryFolder
    private let daemon: ChildProcess

    /// The daemon ended, or could not be connected with, before it listened.
    public struct NotListening: Error {}

    private static let settings = """
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

    /// Starts the daemon; it listens when this returns.
    public convenience init() throws {
        try self.init(in: TemporaryFolder())
    }

    private init(in folder: TemporaryFolder) throws {
        self.folder = folder
        address = "unix:path=" + folder.file("bus")
        daemon = try Self.start(folder, address)
    }

    deinit {
        daemon.signal(SIGKILL)
    }

    /// Kills the daemon, as a crash would, and waits until it is gone.
    public func kill() async {
        daemon.signal(SIGKILL)
        _ = await daemon.wait()
    }

    /// Stops the daemon's clock: it answers nobody until ``resume()``.
    public func pause() {
        daemon.signal(SIGSTOP)
    }

    public func resume() {
        daemon.signal(SIGCONT)
    }

    /// A new daemon at the same address, after ``kill()``.
    public func restarted() throws -> PrivateBus {
        unsafe unlink(folder.file("bus"))
        return try PrivateBus(in: folder)
    }

    private static func start(_ folder: TemporaryFolder, _ address: String) throws -> ChildProcess {
        let settings = try folder.write(settings, to: "bus.conf")
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw NotListening() }
        let (reader, writer) = (ends[0], ends[1])
        defer { close(reader) }
        _ = (fcntl(reader, F_SETFD, FD_CLOEXEC), fcntl(writer, F_SETFD, FD_CLOEXEC))
        let daemon = Result {
            try ChildProcess(
                "dbus-daemon",
                ["--config-file=\(settings)", "--address=\(address)", "--nofork", "--nosyslog", "--print-address=1"],
                output: .descriptor(writer)
            )
        }
        close(writer)
        var octet: UInt8 = 0
        guard unsafe read(reader, &octet, 1) == 1 else { throw NotListening() }
        return try daemon.get()
    }
}
