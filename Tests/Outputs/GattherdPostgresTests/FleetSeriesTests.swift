import GattherdModel
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

    /// The statement of 'Roles' in docs/fleet.md.
    private static let restart = """
        SELECT name, setval(('gattherd.' || name || '_id_seq')::regclass, id + 1, false) FROM (
            SELECT DISTINCT ON (name) name, id FROM (
                SELECT name, id, lead(id, 1, 2147483648) OVER (PARTITION BY name ORDER BY id) - id AS size FROM (
                    SELECT 'metric_series' AS name, id::bigint FROM gattherd.metric_series
                    UNION ALL SELECT 'quantity', id FROM gattherd.quantity
                    UNION ALL SELECT 'air', id FROM gattherd.air
                    UNION ALL VALUES ('metric_series', 0), ('quantity', 0), ('air', 0)
                ) AS used
            ) AS ranges ORDER BY name, size DESC
        ) AS largest
        """

    @Test(arguments: tables) func `entries wait while the numbers of series are used up`(table: String) async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        _ = try await centre.rows("ALTER SEQUENCE gattherd.\(table)_id_seq RESTART WITH 2147483647")
        // A series with the last number, which stays.
        try await Self.resolve(centre, devices: "ARRAY['a']")
        #expect(try await centre.value("SELECT max(id) FROM gattherd.\(table)") == "2147483647")
        let entries = Entries.numbered(1...10) + [Entries.heard(11, at: Entries.time, 20)]
        let faults = try await sink.deliver(entries) { fault in
            #expect(fault.kind == .unavailable && fault.detail.contains("'Roles' in docs/fleet.md"))
            _ = try await centre.rows(Self.restart)
        }
        #expect(faults.count == 1)
        #expect(try await centre.value("SELECT count(DISTINCT seq) FROM gattherd.history") == "11")
    }

    @Test(arguments: tables) func `entries wait while the numbers for their series are in use`(
        table: String
    ) async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver([Entries.heard(1, at: Entries.time, 20)])
        _ = try await centre.rows("ALTER SEQUENCE gattherd.\(table)_id_seq RESTART WITH 1")
        let other = StreamDefinition(
            device: "other",
            profile: "bthome",
            stream: "bthome",
            metrics: [MetricDescriptor(name: "temperature", unit: "°C")]
        )
        let entries = [
            Entries.heard(1, at: Entries.time, 20), Entries.reading(2, (0, .real(21)), of: other, source: .advert),
        ]
        let faults = try await sink.deliver(entries)
        // A single number in use, that of the air, is passed over at once.
        #expect(faults.map(\.kind) == (table == "air" ? [] : [.unavailable]))
        #expect(try await centre.value("SELECT count(DISTINCT seq) FROM gattherd.history") == "2")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.metric_series WHERE air IS NULL") == "0")
    }
}
