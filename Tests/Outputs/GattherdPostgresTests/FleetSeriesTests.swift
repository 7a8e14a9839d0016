import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

/// The ids of series, which all gateways share.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct FleetSeriesTests {
    private static let tables = ["quantity", "air", "metric_series"]

    /// Resolves series of these devices, which are equal otherwise, by an array expression.
    private static func resolve(_ centre: Centre, devices: String) async throws {
        let texts = ["p", "s", "m", "u", "k", "advert"].map { "array_fill('\($0)'::text, ARRAY[n.count])" }
        _ = try await centre.rows(
            """
            SELECT gattherd.resolve(1, n.devices, \(texts.joined(separator: ", ")),
                array_fill(7::bigint, ARRAY[n.count]))
            FROM (SELECT d AS devices, cardinality(d) AS count FROM (SELECT \(devices)) AS a(d)) AS n
            """
        )
    }

    @Test func `a batch uses up numbers only for its new series`() async throws {
        let centre = try await Centre()
        _ = try await centre.fleet.add(gateway: "attic")
        try await Self.resolve(centre, devices: "ARRAY['a']")
        try await Self.resolve(centre, devices: "array_fill('a'::text, ARRAY[1000]) || ARRAY['b', 'b']")
        for table in Self.tables {
            #expect(try await centre.value("SELECT last_value FROM gattherd.\(table)_id_seq") == "2", "\(table)")
            #expect(try await centre.value("SELECT count(*) FROM gattherd.\(table)") == "2", "\(table)")
        }
    }

    @Test func `more series than a gateway sends at once are refused`() async throws {
        let centre = try await Centre()
        _ = try await centre.fleet.add(gateway: "attic")
        await #expect(throws: (any Error).self) {
            try await Self.resolve(centre, devices: "array_fill('a'::text, ARRAY[100001])")
        }
        #expect(try await centre.value("SELECT count(*) FROM gattherd.metric_series") == "0")
    }

    @Test func `entries wait while the numbers of series are used up`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        let sequence = "ALTER SEQUENCE gattherd.metric_series_id_seq RESTART WITH"
        _ = try await centre.rows("\(sequence) 2147483647; SELECT nextval('gattherd.metric_series_id_seq')")
        let entries = Entries.numbered(1...10) + [Entries.heard(11, at: Entries.time, 20)]
        let faults = try await sink.deliver(entries) { fault in
            #expect(fault.kind == .unavailable && fault.detail.contains("'Roles' in docs/fleet.md"))
            let next = "setval('gattherd.metric_series_id_seq', max(id))"
            _ = try await centre.rows("SELECT \(next) FROM gattherd.metric_series")
        }
        #expect(faults.count == 1)
        #expect(try await centre.value("SELECT count(DISTINCT seq) FROM gattherd.history") == "11")
    }
}
