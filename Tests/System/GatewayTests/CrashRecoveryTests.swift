import BlueZKit
import Foundation
import GattherdProcess
import Glibc
import TestKit
import Testing

/// Sudden ends of the daemon or its broker, at many different instants.
///
/// GATTHERD_CRASHES is their number, which is large in `make test-crash`.
@Suite(.timeLimit(.minutes(60)), .serialized) struct CrashRecoveryTests {
    private static let count = ProcessInfo.processInfo.environment["GATTHERD_CRASHES"].flatMap { Int($0) } ?? 3

    /// The instant of a crash, in the first four seconds, in which most things happen.
    ///
    /// The golden ratio spreads instants evenly.
    private static func instant(_ round: Int) -> Duration {
        .seconds(4) * (Double(round + 1) * 0.618_034).truncatingRemainder(dividingBy: 1)
    }

    /// With a small file pages are copied from its write-ahead log often.
    private static let history = "max_size: 16MiB"
    private static let supervisor = TestPeripherals(
        .init("heart-rate", "strap", count: 4, "rate: 25, energy: true, rr: 1")
    )

    @Test func `a killed daemon loses no committed reading and repeats no number`() async throws {
        let gateway = try await Gateway(Self.supervisor, history: Self.history)
        try await expectNothingLost(gateway) { $0.signal(SIGKILL) }
    }

    @Test(.enabled("needs a file system of its own") { await VolatileDisk.isPossible() })
    func `a power loss loses no committed reading and repeats no number`() async throws {
        let disk = try await VolatileDisk()
        let gateway = try await Gateway(Self.supervisor, disk: disk.path, history: Self.history)
        try await expectNothingLost(gateway) { try await disk.cutPower(of: $0) }
    }

    @Test func `a killed, stopped or frozen broker receives everything in order once it is back`() async throws {
        let gateway = try await Gateway(Self.supervisor)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        for round in 0..<Self.count {
            try await Task.sleep(for: Self.instant(round))
            switch round % 3 {
            case 0: await gateway.broker.kill()
            case 1: await gateway.broker.stop()
            default:
                gateway.broker.freeze()
                try await gateway.waitForReadings(20)
                gateway.broker.thaw()
                continue
            }
            try await gateway.broker.start()
        }
        try await gateway.waitForReadings(20)
        try await gateway.silence()
        try await check(gateway, subscriber, [])
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
        try await gateway.stack.stop()
    }

    private func expectNothingLost(_ gateway: Gateway, _ end: (ChildProcess) async throws -> Void) async throws {
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        var crashes: [CrashState] = []
        for round in 0..<Self.count {
            let daemon = try gateway.startDaemon()
            try await Task.sleep(for: Self.instant(round))
            let seen = subscriber.seqs.max() ?? 0
            try await end(daemon)
            _ = await daemon.wait()
            crashes.append(try await gateway.crashState())
            #expect(crashes[round].seq >= seen, "crash \(round): a subscriber saw \(seen)")
        }
        let daemon = try gateway.startDaemon()
        try await gateway.waitForReadings(20)
        try await gateway.silence()
        try await check(gateway, subscriber, crashes)
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
        try await gateway.stack.stop()
    }

    private func check(_ gateway: Gateway, _ subscriber: Subscriber, _ crashes: [CrashState]) async throws {
        try await gateway.waitUntilDelivered()
        for (round, crash) in crashes.enumerated() {
            let count = try await gateway.storedCount(through: crash.seq)
            #expect(count == crash.count, "crash \(round): history has changed")
        }
        let last = Int(try await gateway.database.value("SELECT max(seq) FROM history"))
        // Retained readings that a killed broker lost may follow.
        try await eventually { subscriber.seqs.contains { $0 == last } }
        let ready = try await gateway.readyTimes()
        func disagreements(_ audit: DeliveryAudit) -> [DeliveryAudit.Problem] {
            audit.problems(tail: 0, of: audit.outages(crashes, ready: ready))
        }
        let audit = try await gateway.audit(of: subscriber) { disagreements($0).isEmpty }
        let problems = disagreements(audit)
        #expect(problems.isEmpty, "\(problems.count): \(problems.prefix(12))")
        // A slow machine may store only the readings that the test waits for, 20 of each device.
        #expect(audit.storedCount > 20 * Self.count)
        #expect(try await gateway.database.value("PRAGMA integrity_check") == "ok")
    }
}
