import Foundation
import GattherdSync
import TestKit
import Testing

/// `gattherd homeassistant statistics` on the command line.
@Suite(.timeLimit(.minutes(2))) struct StatisticsCommandTests {
    private struct Import: Decodable {
        struct Row: Decodable {
            let min, mean, max: Double
        }
        let stats: [Row]
    }

    private let history: HistoryFolder
    private let home: FakeHomeAssistant

    init() async throws {
        history = try await HistoryFolder()
        home = try FakeHomeAssistant { content in
            let id = "gattherd_attic_c0ffee000001_heart_rate-heart_rate"
            content.add("sensor.strap_heart_rate", uniqueID: id, unit: "bpm")
        }
    }

    private func run(
        token: String = "a-token",
        url: String? = nil,
        _ words: String...
    ) async throws -> (code: Int32, output: String, complaints: String) {
        try history.folder.write(token + "\n", to: "token")
        let text = """
            gateway: attic
            mqtt:
              url: mqtt://localhost
              home_assistant: {statistics: {url: '\(url ?? home.url)', token_file: token}}
            """
        let file = try history.folder.write(text, to: "gattherd.yaml")
        let command = ["homeassistant", "statistics", "--config", file, "--since", "2026-11-21"] + words
        return try await history.gattherd(command)
    }

    @Test func `the hours of a time range are those of the view`() async throws {
        let result = try await run("--until", "2026-11-22")
        let times = "2026-11-21T00:00:00.000000Z to 2026-11-22T00:00:00.000000Z"
        #expect(result == (0, "\(home.url): 2 hours of 1 entities imported, \(times)\n", ""))
        let rows = try home.content.state.imports.flatMap { text in
            try JSONDecoder().decode(Import.self, from: Data(text.utf8)).stats.map { [$0.min, $0.mean, $0.max] }
        }
        let query = "SELECT min, mean, max FROM history_hours WHERE metric = 'heart_rate' ORDER BY ts"
        let expected = try await SQLiteShell(history.database).rows(query).map { $0.compactMap { Double($0) } }
        #expect(rows.count == 2)
        for (row, other) in zip(rows.joined(), expected.joined()) { #expect(abs(row - other) < 1e-6) }
    }

    @Test func `each failure has its exit code and a remedy`() async throws {
        let refused = try await run(token: "wrong")
        #expect(refused.code == 78)
        #expect(refused.complaints.contains("long-lived access token"))
        let port = try Broker.freePort()
        #expect(try await run(url: "http://127.0.0.1:\(port)").code == 69)
        #expect(try await run("--until", "2026-11-20").code == 64)
        home.content.update { $0.refusedImport = .init("sensor.strap_heart_rate", code: "invalid_format") }
        let all = try await run()
        #expect(all.code == 69 && all.output.isEmpty)
        #expect(all.complaints.contains("Home Assistant refuses all statistics of these hours"))
        home.content.update { $0.entities = [:] }
        let nothing = try await run()
        #expect(nothing.code == 65)
        #expect(nothing.complaints.contains("has no statistics for a metric of this gateway"))
        let file = try history.folder.write("gateway: attic", to: "other.yaml")
        let absent = try await history.gattherd("homeassistant", "statistics", "--since", "1d", "--config", file)
        #expect(absent.code == 78)
        #expect(absent.complaints.contains("mqtt.home_assistant.statistics"))
        #expect(try await history.gattherd("homeassistant", "statistics").code == 64)
    }
}
