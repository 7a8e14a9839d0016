import FoundationEssentials
import GattherdModel
import TestKit
import Testing

@testable import GattherdPostgres

/// The dashboard in `config/grafana`, as far as its queries go.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct GrafanaTests {
    private struct Dashboard: Decodable {
        struct Panel: Decodable {
            struct Target: Decodable {
                let rawSql: String
                let format: String
            }

            let title: String
            let targets: [Target]?
        }

        struct Templating: Decodable {
            struct Variable: Decodable {
                let name: String
                let type: String
                let query: String
            }

            let list: [Variable]
        }

        let panels: [Panel]
        let templating: Templating
    }

    private static func dashboard() throws -> Dashboard {
        let data = try Data(contentsOf: Checkout.root.appending(path: "config/grafana/fleet.json"))
        return try JSONDecoder().decode(Dashboard.self, from: data)
    }

    /// The query as Grafana sends it.
    private static func filled(_ sql: String) -> String {
        let now = Entries.time.microseconds / 1_000_000
        let values = [
            "$__unixEpochFrom()": "\(now - 3600)", "$__unixEpochTo()": "\(now + 3600)",
            "$gateway": "'attic','cellar'", "$device": "'tag','strap'", "$metric": "temperature",
        ]
        return values.reduce(sql) { $0.replacing($1.key, with: $1.value) }
    }

    /// A centre with readings, and the client of a role that has the rights of the documentation.
    private static func centre() async throws -> (Centre, PostgresClient) {
        let centre = try await Centre()
        for gateway in ["attic", "cellar"] {
            let record = DeviceRecord(device: "tag", address: "C0:FF:EE:00:00:01")
            let devices = [SeenDevice(record, first: Entries.time, last: Entries.time)]
            let sink = try await centre.sink(of: gateway, devices: devices)
            let event = LifecycleEvent(time: Entries.time, device: nil, kind: "daemon", detail: "{}")
            let gone = JournalGap(after: 0, through: 1, reason: "deleted for its age")
            _ = try await sink.cursor(in: .test)
            try await sink.record(gone)
            try await sink.deliver([
                Entries.heard(2, at: Entries.time, 21.5, packet: 1), Entries.reading(3, (0, .integer(60))),
                .event(event, seq: 4),
            ])
        }
        let page = try String(contentsOf: Checkout.root.appending(path: "docs/fleet.md"), encoding: .utf8)
        let grants = page.matches(of: /'(GRANT [^']*TO grafana)'/).map { String($0.output.1) }
        #expect(grants.count > 2)
        _ = try await centre.rows("CREATE ROLE grafana LOGIN PASSWORD 'x'; \(grants.joined(separator: "; "))")
        return (centre, PostgresClient(try Centre.url(centre.server.port, user: "grafana")) { "x" })
    }

    @Test func `every query runs with the documented rights and finds rows`() async throws {
        let dashboard = try Self.dashboard()
        let (centre, client) = try await Self.centre()
        let panels = dashboard.panels.flatMap { panel in (panel.targets ?? []).map { (panel.title, $0) } }
        #expect(panels.count >= 10)
        for (title, target) in panels {
            let rows = try await client.run(Self.filled(target.rawSql))
            #expect(!rows.isEmpty, "\(title)")
            #expect(!Self.filled(target.rawSql).contains("$"), "\(title)")
        }
        for variable in dashboard.templating.list where variable.type == "query" {
            #expect(try await !client.run(Self.filled(variable.query)).isEmpty, "\(variable.name)")
        }
        await centre.server.stop()
    }

    @Test func `time series have the columns that Grafana expects`() async throws {
        let (centre, _) = try await Self.centre()
        for panel in try Self.dashboard().panels {
            for target in panel.targets ?? [] where target.format == "time_series" {
                let sql = Self.filled(target.rawSql)
                let types = try await centre.rows(
                    "SELECT pg_typeof(time), pg_typeof(metric), pg_typeof(value) FROM (\(sql)) AS q LIMIT 1"
                )
                #expect(types == [["timestamp with time zone", "text", "double precision"]], "\(panel.title)")
            }
        }
    }
}
