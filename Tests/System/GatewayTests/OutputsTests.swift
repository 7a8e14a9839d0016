import BlueZKit
import Foundation
import GattherdProcess
import Glibc
import TestKit
import Testing

/// A whole gateway with several outputs.
@Suite(.timeLimit(.minutes(10)), .serialized) struct OutputsTests {
    private static let straps = TestPeripherals(.init("heart-rate", "strap", count: 4, "rate: 25, rr: 1"))
    /// JSON lines in a file, and a server that is not there.
    private static let outputs = """
        lines: {path: FOLDER/lines.jsonl}
        influx: {url: "http://127.0.0.1:1", database: test}
        """

    /// The numbers of the lines of a type, without repetitions, in the order of the file.
    private func numbers(_ type: String, in text: String) throws -> [Int] {
        var seen: Set<Int> = []
        return try text.split(separator: "\n").compactMap { line in
            let value = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            guard value?["type"] as? String == type, let seq = value?["seq"] as? Int else { return nil }
            return seen.insert(seq).inserted ? seq : nil
        }
    }

    private func stored(_ sql: String, _ gateway: Gateway) async throws -> [Int] {
        try await gateway.database.rows(sql).compactMap { Int($0[0]) }
    }

    /// Waits until an output has the newest entry, and expects it to have everything, in order; more may follow.
    private func expectEverything(_ gateway: Gateway) async throws {
        let readings = try await stored("SELECT DISTINCT seq FROM history ORDER BY seq", gateway)
        let events = try await stored("SELECT id FROM event ORDER BY id", gateway)
        let head = max(readings.last ?? 0, events.last ?? 0)
        try await eventually {
            try await gateway.database.value("SELECT cursor >= \(head) FROM consumer WHERE name = 'lines'") == "1"
        }
        let text = try gateway.content(of: "lines.jsonl")
        #expect(try numbers("reading", in: text).prefix(readings.count) == readings[...])
        #expect(try numbers("event", in: text).prefix(events.count) == events[...])
    }

    @Test func `each output gets every entry in order while the daemon is killed and another is dead`() async throws {
        let gateway = try await Gateway(Self.straps, outputs: Self.outputs)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        for pause in [2.1, 0.7, 3.3] {
            let daemon = try gateway.startDaemon()
            try await Task.sleep(for: .seconds(pause))
            daemon.signal(SIGKILL)
            _ = await daemon.wait()
        }
        let daemon = try gateway.startDaemon()
        try await gateway.waitForReadings(20)
        try await gateway.silence()
        try await gateway.waitUntilDelivered()
        try await expectEverything(gateway)
        let readings = try await stored("SELECT DISTINCT seq FROM history ORDER BY seq", gateway)
        let last = try #require(readings.last)
        try await eventually { subscriber.seqs.contains { $0 == last } }
        #expect(Set(subscriber.seqs.filter { $0 <= last }) == Set(readings))
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
        try await gateway.stack.stop()
    }

    @Test func `status names each output, its backlog and its problem`() async throws {
        let gateway = try await Gateway(Self.straps, outputs: Self.outputs)
        let daemon = try gateway.startDaemon()
        try await gateway.waitForReadings(20)
        try await eventually {
            let (_, text) = try await gateway.command("status", "--json")
            let status = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            let outputs = status?["outputs"] as? [[String: Any]] ?? []
            guard outputs.compactMap({ $0["name"] as? String }) == ["mqtt", "lines", "influx"] else { return false }
            let backlog = outputs[2]["backlog"] as? Int ?? 0
            return outputs[2]["error"] is String && backlog > 20 && outputs[1]["error"] == nil
        }
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
        try await gateway.stack.stop()
    }
}
