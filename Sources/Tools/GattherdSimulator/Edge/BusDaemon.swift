public import GattherdDBus
import GattherdProcess
import Glibc

/// A dbus-daemon of our own, with the limits of a system bus and without its policy.
public final class BusDaemon: Sendable {
    public let address: DBusAddress
    private let folder: String
    private let process: ChildProcess

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

    /// Starts it; it listens when this returns.
    ///
    /// - Throws: ``SimulatorError`` when there is no dbus-daemon, or it does not start.
    public init() throws(SimulatorError) {
        var template = Array("/tmp/gattherd-sim-XXXXXX".utf8CString)
        guard let made = unsafe mkdtemp(&template) else { throw .system("cannot make a folder in /tmp") }
        folder = unsafe String(cString: made)
        address = .address("unix:path=\(folder)/bus")
        do throws(SimulatorError) {
            try Self.writeSettings(to: folder + "/bus.conf")
            process = try Self.start(folder, address)
        } catch {
            Self.remove(folder)
            throw error
        }
    }

    deinit {
        process.signal(SIGKILL)
        Self.remove(folder)
    }

    /// Ends it and waits for its end.
    public func stop() async {
        process.signal(SIGTERM)
        _ = await process.wait()
    }

    private static func start(_ folder: String, _ address: DBusAddress) throws(SimulatorError) -> ChildProcess {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw .system("cannot make a pipe") }
        let (reader, writer) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(reader) }
        let process = try spawn(folder, address, output: writer)
        var octet: UInt8 = 0
        guard unsafe read(reader, &octet, 1) == 1 else {
            throw SimulatorError("dbus-daemon ended before it listened at \(address)")
        }
        return process
    }

    private static func spawn(
        _ folder: String,
        _ address: DBusAddress,
        output: Int32
    ) throws(SimulatorError) -> ChildProcess {
        defer { close(output) }
        let arguments = [
            "--config-file=\(folder)/bus.conf", "--address=\(address)", "--nofork", "--nosyslog", "--print-address=1",
        ]
        do throws(SpawnError) {
            return try ChildProcess("dbus-daemon", arguments, output: .descriptor(output), errors: .null)
        } catch {
            throw SimulatorError("\(error); it comes with Debian's package dbus-daemon")
        }
    }

    private static func writeSettings(to path: String) throws(SimulatorError) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .system("cannot write \(path)") }
        defer { close(file) }
        let octets = Array(settings.utf8)
        guard unsafe write(file, octets, octets.count) == octets.count else { throw .system("cannot write \(path)") }
    }

    private static func remove(_ folder: String) {
        for name in ["bus", "bus.conf"] { unsafe unlink("\(folder)/\(name)") }
        unsafe rmdir(folder)
    }
}

extension SimulatorError {
    /// What was tried, and the system's word for why it failed.
    static func system(_ attempt: String) -> SimulatorError {
        SimulatorError("\(attempt): \(unsafe String(cString: strerror(errno)))")
    }
}
