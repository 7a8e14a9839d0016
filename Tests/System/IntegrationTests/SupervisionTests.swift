import GattherdProcess
import Glibc
import TestKit
import Testing

/// The daemon's notifications to systemd, received by a test socket.
@Suite(.timeLimit(.minutes(2))) struct SupervisionTests {
    private static let ready = [
        "READY=1", "STATUS=no devices: find them with 'gattherd scan', then add one: gattherd add ADDRESS",
    ]

    @Test func `systemctl status shows a reload that failed or needs a restart`() async throws {
        let folder = try TemporaryFolder()
        let (daemon, socket) = try start(in: folder)
        #expect(socket.next(besides: "WATCHDOG=1") == Self.ready)
        for (text, status) in [
            ("log: {format: json}", "changes of bluetooth, history and log take effect only at a restart: "),
            ("zzz: 1", "the configuration was not reloaded: "),
        ] {
            try folder.write("gateway: test\n" + text, to: "gattherd.yaml")
            daemon.signal(SIGHUP)
            #expect(socket.next(besides: "WATCHDOG=1").first == "RELOADING=1")
            #expect(socket.next(besides: "WATCHDOG=1").last?.contains(status) == true)
        }
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }

    @Test func `the daemon notifies systemd when it is ready, alive, reloading and stopping`() async throws {
        let folder = try TemporaryFolder()
        let (daemon, socket) = try start(in: folder)
        #expect(socket.next(besides: "WATCHDOG=1") == Self.ready)
        #expect(socket.next() == ["WATCHDOG=1"])
        daemon.signal(SIGHUP)
        let reloading = socket.next(besides: "WATCHDOG=1")
        #expect(reloading.first == "RELOADING=1")
        #expect(reloading.last?.wholeMatch(of: /MONOTONIC_USEC=[0-9]+/) != nil)
        #expect(socket.next(besides: "WATCHDOG=1") == Self.ready)
        daemon.signal(SIGTERM)
        #expect(socket.next(besides: "WATCHDOG=1") == ["STOPPING=1"])
        #expect(await daemon.wait() == .exited(0))
    }

    @Test(arguments: [true, false])
    func `a plugin that hangs delays only the reload`(isReleased: Bool) async throws {
        let folder = try TemporaryFolder()
        let pipe = folder.file("pipe")
        try #require(unsafe mkfifo(pipe, 0o600) == 0)
        let source = """
            #include <fcntl.h>
            #include <stddef.h>
            #include "gattherd_profile.h"

            const gattherd_profile *gattherd_profile_v1(uint32_t minor) { open("\(pipe)", O_RDONLY); return NULL; }
            """
        let plugin = try await SharedLibrary.build(source, to: "plugin.so", in: folder)
        let (daemon, socket) = try start(in: folder)
        #expect(socket.next(besides: "WATCHDOG=1") == Self.ready)
        try configure(folder, profiles: plugin)
        daemon.signal(SIGHUP)
        #expect(socket.next(besides: "WATCHDOG=1").first == "RELOADING=1")
        for _ in 0..<3 { #expect(socket.next() == ["WATCHDOG=1"]) }
        if isReleased {
            close(unsafe open(pipe, O_WRONLY | O_CLOEXEC))
            #expect(socket.next(besides: "WATCHDOG=1") == Self.ready)
        }
        daemon.signal(SIGTERM)
        #expect(socket.next(besides: "WATCHDOG=1") == ["STOPPING=1"])
        #expect(await daemon.wait() == .exited(0))
    }

    private func start(in folder: TemporaryFolder) throws -> (ChildProcess, NotificationSocket) {
        let settings = try configure(folder)
        let socket = try NotificationSocket(folder.file("notify"))
        let daemon = try ChildProcess(
            Programs.path("gattherd"),
            ["run", "--config", settings],
            environment: ["NOTIFY_SOCKET=\(socket.path)", "WATCHDOG_USEC=300000"],
            errors: .null
        )
        return (daemon, socket)
    }

    @discardableResult
    private func configure(_ folder: TemporaryFolder, profiles paths: String...) throws -> String {
        try folder.write(
            """
            gateway: test
            bluetooth: {bus: "unix:path=\(folder.file("no-bus"))"}
            history: {path: \(folder.file("history.db"))}
            profiles: {paths: [\(paths.joined(separator: ", "))]}
            """,
            to: "gattherd.yaml"
        )
    }
}

/// A socket for `sd_notify(3)`.
private final class NotificationSocket {
    let path: String
    private let descriptor: Int32

    init(_ path: String) throws {
        self.path = path
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let octets = Array(path.utf8)
        try #require(octets.count < MemoryLayout.size(ofValue: address.sun_path))
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: octets) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let code = unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(descriptor, $0, size) }
        }
        try #require(code == 0)
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    /// Returns the lines of the next notification other than `ignored`; empty after a minute.
    func next(besides ignored: String = "") -> [String] {
        while true {
            var octets = [UInt8](repeating: 0, count: 4096)
            let count = unsafe recv(descriptor, &octets, octets.count, 0)
            guard count > 0 else { return [] }
            let text = String(decoding: octets.prefix(count), as: UTF8.self)
            if text != ignored { return text.split(separator: "\n").map(String.init) }
        }
    }
}
