import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

@Suite(
    .enabled(if: Centre.isAvailable && PgBouncer.program != nil, "PgBouncer is missing; run: make test-servers"),
    .timeLimit(.minutes(3))
)
struct PgBouncerTests {
    @Test func `fifty gateways share few connections in transaction mode`() async throws {
        let centre = try await Centre(settings: ["max_connections=70"])
        var gateways: [(name: String, credentials: FleetDatabase.Credentials)] = []
        for number in 1...50 {
            let name = "gateway-\(number)"
            gateways.append((name, try await centre.fleet.add(gateway: name)))
        }
        let users = gateways.map { (name: $0.credentials.role, password: $0.credentials.password) }
        let bouncer = try PgBouncer(centre.server, database: Centre.database, users: users)
        try await bouncer.start()
        try await withThrowingTaskGroup { group in
            for gateway in gateways {
                let sink = try centre.sink(of: gateway.name, gateway.credentials, port: bouncer.port)
                group.addTask {
                    let correction = ClockCorrection(after: 0, through: 50, shift: .seconds(60))
                    let entries = Entries.numbered(1...100) + [.correction(correction, seq: 101)]
                    return try await sink.deliver(entries, batch: 10)
                }
            }
            for try await faults in group { #expect(faults.isEmpty, "\(faults.first?.detail ?? "")") }
        }
        let counts = try await centre.rows("SELECT count(*), count(DISTINCT gateway) FROM gattherd.history")
        #expect(counts == [["5000", "50"]])
        #expect(try await centre.value("SELECT sum(n) FROM gattherd.history_minutes") == "5000")
    }

    @Test func `connections of the pool are used by several clients in turn`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let bouncer = try PgBouncer(
            centre.server,
            database: Centre.database,
            users: [(credentials.role, credentials.password)]
        )
        try await bouncer.start()
        let first = try centre.sink(of: "attic", credentials, port: bouncer.port)
        let second = try centre.sink(of: "attic", credentials, port: bouncer.port)
        for number in Int64(0)..<20 {
            let sink = number.isMultiple(of: 2) ? first : second
            try await sink.deliver(Entries.numbered(1...(number + 1)))
        }
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "20")
    }
}
