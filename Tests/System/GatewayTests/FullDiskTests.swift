import BlueZKit
import Foundation
import GattherdProcess
import Glibc
import TestKit
import Testing

/// A disk that fills up while the daemon runs, and has room again later.
@Suite(.timeLimit(.minutes(4)), .serialized, .enabled(if: SmallFileSystem.isPossible)) struct FullDiskTests {
    private static let supervisor = TestPeripherals(
        .init("heart-rate", "strap", count: 4, "rate: 25, energy: true, rr: 1")
    )

    @Test func `with when_full deliver unstored readings are delivered marked, in order and completely`() async throws {
        let disk = try SmallFileSystem(kibibytes: 2048)
        let gateway = try await Gateway(Self.supervisor, disk: disk.path, history: "when_full: deliver")
        let audit = try await withFullDisk(disk, gateway) { subscriber in
            try await eventually { subscriber.messages.contains { $0.payload.contains("\"stored\":false,") } }
        }
        let problems = audit.includingUnstored.problems(tail: 0)
        #expect(problems.isEmpty, "\(problems.count): \(problems.prefix(12))")
        #expect(
            try await states(gateway) == [
                "failing NULL", "delivering_unstored NULL", "recovered \(audit.unstoredCount)",
            ]
        )
    }

    @Test func `readings are delivered only after they are stored if when_full is hold`() async throws {
        let disk = try SmallFileSystem(kibibytes: 2048)
        let gateway = try await Gateway(Self.supervisor, disk: disk.path, history: "when_full: hold")
        let audit = try await withFullDisk(disk, gateway) { _ in
            let count = try await gateway.truth().entries.count
            try await eventually { try Truth(path: gateway.stack.truthPath).entries.count > count + 500 }
        }
        let problems = audit.problems(tail: 0)
        #expect(problems.isEmpty, "\(problems.count): \(problems.prefix(12))")
        #expect(audit.unstoredCount == 0)
        #expect(try await states(gateway) == ["failing NULL", "recovered 0"])
    }

    /// Runs the whole scenario of a full disk.
    private func withFullDisk(
        _ disk: SmallFileSystem,
        _ gateway: Gateway,
        _ wait: (Subscriber) async throws -> Void
    ) async throws -> DeliveryAudit {
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(20)
        let ballast = try disk.fill()
        try await eventually { gateway.log.contains("history cannot be used") }
        try await wait(subscriber)
        try FileManager.default.removeItem(atPath: ballast)
        try await eventually { try await self.states(gateway).last?.hasPrefix("recovered") == true }
        try await gateway.waitForReadings(20)
        try await gateway.silence()
        try await gateway.waitUntilDelivered()
        let last = Int(try await gateway.database.value("SELECT max(seq) FROM history"))
        try await eventually { subscriber.seqs.contains { $0 == last } }
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
        try await gateway.stack.stop()
        return try await gateway.audit(of: subscriber) { $0.includingUnstored.problems(tail: 0).isEmpty }
    }

    private func states(_ gateway: Gateway) async throws -> [String] {
        let sql = """
            SELECT json_extract(detail, '$.state'), json_extract(detail, '$.unstored') FROM events
            WHERE kind = 'history' ORDER BY ts
            """
        return try await gateway.database.rows(sql).map { $0.joined(separator: " ") }
    }
}
