import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

/// The daemon without a reader of its log.
@Suite(.timeLimit(.minutes(2))) struct StalledLogTests {
    /// A pipe in which there is no room.
    private final class FullPipe {
        let ends: (out: Int32, in: Int32)

        init() throws {
            var pair: [Int32] = [-1, -1]
            try #require(unsafe pipe(&pair) == 0)
            ends = (pair[0], pair[1])
            _ = fcntl(ends.in, F_SETFL, O_NONBLOCK)
            while unsafe write(ends.in, [10], 1) == 1 {}
            _ = fcntl(ends.in, F_SETFL, 0)
        }

        deinit {
            close(ends.out)
            close(ends.in)
        }
    }

    @Test func `links, requests and the stop work while nobody reads the log`() async throws {
        let gateway = try await Gateway(TestPeripherals(.init("heart-rate", "strap", count: 2, "rate: 5")))
        let pipe = try FullPipe()
        let daemon = try gateway.startDaemon(log: .descriptor(pipe.ends.in))
        try await gateway.waitUntilReady()
        try await gateway.order("drop", "strap-1")
        try await eventually { try await gateway.readyCount("strap-1") >= 2 }
        let (code, table) = try await gateway.command("status")
        #expect(code == 0 && table.contains("strap-1"))
        daemon.signal(SIGHUP)
        try await gateway.waitForEvent("daemon", "reloaded")
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
        withExtendedLifetime(pipe) {}
        try await gateway.stack.stop()
    }

    @Test func `a daemon that cannot start exits while nobody reads the log`() async throws {
        let peripherals = TestPeripherals(.init("heart-rate", "strap", count: 1, "rate: 5"))
        let gateway = try await Gateway(peripherals, disk: "/dev/null")
        let pipe = try FullPipe()
        #expect(await (try gateway.startDaemon(log: .descriptor(pipe.ends.in))).wait() == .exited(73))
        withExtendedLifetime(pipe) {}
        try await gateway.stack.stop()
    }
}
