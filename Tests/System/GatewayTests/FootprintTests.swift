import BlueZKit
import Foundation
import GattherdProcess
import Glibc
import TestKit
import Testing

/// The number of the daemon's threads.
@Suite(.timeLimit(.minutes(5)), .serialized) struct FootprintTests {
    @Test func `tasks and timers need no threads but the daemon's own`() async throws {
        let gateway = try await Gateway(TestPeripherals(.init("heart-rate", "strap", count: 2, "rate: 20")))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.order("drop", "strap-1")
        try await eventually { try await gateway.readyCount("strap-1") >= 2 }
        daemon.signal(SIGHUP)
        try await gateway.waitForEvent("daemon", "reloaded")
        let known: Set = ["gattherd", "tasks", "log", "signals", "history", "control", "mqtt", "bluez"]
        // Those that connect or read a file end soon; libdispatch's would stay.
        try await eventually { try threads(of: daemon).isSubset(of: known) }
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
        try await gateway.stack.stop()
    }

    private func threads(of child: ChildProcess) throws -> Set<String> {
        let folder = "/proc/\(child.pid)/task"
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).compactMap { task in
            try? String(contentsOfFile: "\(folder)/\(task)/comm", encoding: .utf8).trimmingCharacters(in: .newlines)
        }
        return Set(names)
    }
}
