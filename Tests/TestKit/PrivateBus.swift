import GattherdProcess
import Glibc

/// A dbus-daemon of the test's own, with the limits of a system bus.
public final class PrivateBus: Sendable {
    /// Where it listens, in D-Bus's syntax.
    public let address: String
    private let folder: TemporaryFolder
    private let daemon: Daemon

    private struct Daemon: Sendable {
        let process: ChildProcess
    }

    private static let settings = """
        <busconfig>
          <type>system</type>
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
        daemon.process.signal(SIGKILL)
    }

    /// Kills the daemon, as a crash would, and waits until it is gone.
    public func kill() async {
        daemon.process.signal(SIGKILL)
        _ = await daemon.process.wait()
    }

    /// Stops the daemon's clock: it answers nobody until ``resume()``.
    public func pause() {
        daemon.process.signal(SIGSTOP)
    }

    public func resume() {
        daemon.process.signal(SIGCONT)
    }

    /// A new daemon at the same address, after ``kill()``.
    public func restarted() throws -> PrivateBus {
        unlink(folder.file("bus"))
        return try PrivateBus(in: folder)
    }

    private static func start(_ folder: TemporaryFolder, _ address: String) throws -> Daemon {
        let settings = try folder.write(settings, to: "bus.conf")
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe2(&ends, O_CLOEXEC) == 0 else { throw SpawnError(program: "pipe", code: errno) }
        defer { close(ends[0]) }
        let process: ChildProcess
        do {
            defer { close(ends[1]) }
            process = try ChildProcess(
                "dbus-daemon",
                ["--config-file=\(settings)", "--address=\(address)", "--nofork", "--nosyslog", "--print-address=1"],
                output: .descriptor(ends[1])
            )
        }
        var octet: UInt8 = 0
        guard unsafe read(ends[0], &octet, 1) == 1 else { throw SpawnError(program: "dbus-daemon", code: EIO) }
        return Daemon(process: process)
    }
}
