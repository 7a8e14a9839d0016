import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

/// Advertisements that several gateways hear.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct ReceptionTests {
    private static func time(_ seconds: Double) -> Timestamp { Entries.time.advanced(by: .seconds(seconds)) }

    /// The temperatures of the readings in history, with the gateway that delivered each first.
    private static func readings(_ centre: Centre) async throws -> [[String]] {
        try await centre.rows(
            "SELECT gateway, seq, value FROM gattherd.history WHERE metric = 'temperature' ORDER BY ts, gateway"
        )
    }

    private static func seen(_ address: String) -> [SeenDevice] {
        let record = DeviceRecord(device: "tag", address: address, name: "Tag", profiles: ["bthome"])
        return [SeenDevice(record, first: Entries.time, last: Entries.time)]
    }

    @Test func `an advertisement that three gateways heard is one reading with three receptions`() async throws {
        let centre = try await Centre()
        for (number, gateway) in ["attic", "cellar", "shed"].enumerated() {
            let offset = Double(number) * 0.02
            let entries = (1...3).map { packet in
                let (time, rssi) = (Self.time(Double(packet) * 5 + offset), -60 - 10 * Int64(number))
                return Entries.heard(Int64(packet), at: time, 21.5, packet: Int64(packet), rssi: rssi)
            }
            try await centre.sink(of: gateway).deliver(entries)
        }
        #expect(try await Self.readings(centre) == (1...3).map { ["attic", "\($0)", "21.5"] })
        let receptions = try await centre.rows(
            """
            SELECT gateway, seq, rssi, reading_gateway, reading_seq, device, stream FROM gattherd.receptions
            WHERE reading_seq = 2 ORDER BY ts
            """
        )
        let rest = ["attic", "2", "tag", "bthome"]
        let expected = [["attic", "2", "-60"], ["cellar", "2", "-70"], ["shed", "2", "-80"]].map { $0 + rest }
        #expect(receptions == expected)
        let counts = try await centre.rows(
            "SELECT metric, sum(n) FROM gattherd.history_hours GROUP BY 1 ORDER BY 1"
        )
        #expect(counts == [["packet_id", "3"], ["rssi", "9"], ["temperature", "3"]])
        #expect(try await centre.value("SELECT count(*) FROM gattherd.latest WHERE metric = 'temperature'") == "1")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.latest WHERE metric = 'rssi'") == "3")
        let all = try await centre.rows("SELECT gateway, count(*) FROM gattherd.gateway_history GROUP BY 1 ORDER BY 1")
        #expect(all == [["attic", "9"], ["cellar", "9"], ["shed", "9"]])
        try await centre.expectSummaries()
    }

    @Test func `a counter distinguishes advertisements with equal values`() async throws {
        let centre = try await Centre()
        let (attic, cellar) = (try await centre.sink(of: "attic"), try await centre.sink(of: "cellar"))
        try await attic.deliver([Entries.heard(1, at: Self.time(0), 21.5, packet: 1)])
        try await cellar.deliver([
            Entries.heard(1, at: Self.time(1), 21.5, packet: 2), Entries.heard(2, at: Self.time(2), 21.5, packet: 1),
        ])
        #expect(try await Self.readings(centre) == [["attic", "1", "21.5"], ["cellar", "1", "21.5"]])
    }

    @Test func `equal values without a counter are one reading within half a minute`() async throws {
        let centre = try await Centre()
        let (attic, cellar) = (try await centre.sink(of: "attic"), try await centre.sink(of: "cellar"))
        try await attic.deliver((0..<4).map { Entries.heard($0 + 1, at: Self.time(Double($0) * 100), 21.5) })
        try await cellar.deliver([
            Entries.heard(1, at: Self.time(-30.001), 21.5), Entries.heard(2, at: Self.time(129.9), 21.5),
            Entries.heard(3, at: Self.time(150), 21.5), Entries.heard(4, at: Self.time(270.1), 21.5),
            Entries.heard(5, at: Self.time(300), 22),
        ])
        let others = try await Self.readings(centre).filter { $0[0] == "cellar" }.map { $0[1] }
        #expect(others == ["1", "3", "5"])
        try await centre.expectSummaries()
    }

    @Test func `values that alternate are paired by time, each with one of each gateway`() async throws {
        let centre = try await Centre()
        let (attic, cellar) = (try await centre.sink(of: "attic"), try await centre.sink(of: "cellar"))
        func door(_ times: [Double]) -> [JournalEntry] {
            times.enumerated().map { Entries.heard(Int64($0) + 1, at: Self.time($1), 1) }
        }
        try await cellar.deliver(door([0.1, 12.1]))
        try await attic.deliver(door([0, 6, 12, 18]))
        #expect(try await Self.readings(centre).map { $0[0] + $0[1] } == ["cellar1", "attic2", "cellar2", "attic4"])
    }

    @Test func `devices of one name with different addresses are different`() async throws {
        let centre = try await Centre()
        let gateways: [(String, String?)] = [("attic", "A"), ("cellar", "B"), ("shed", "A"), ("porch", nil)]
        for (gateway, address) in gateways {
            let devices = address.map(Self.seen) ?? []
            let sink = try await centre.sink(of: gateway, devices: devices)
            try await sink.deliver([Entries.heard(1, at: Self.time(0), 21.5, packet: 1)])
        }
        #expect(try await Self.readings(centre).map { $0[0] } == ["attic", "cellar"])
        let devices = try await centre.rows("SELECT gateway, address, name, profiles FROM gattherd.devices ORDER BY 1")
        let named = ["Tag", "bthome"]
        #expect(
            devices == [
                ["attic", "A"] + named, ["cellar", "B"] + named, ["porch", "NULL", "NULL", "bthome"],
                ["shed", "A"] + named,
            ]
        )
    }

    @Test func `values of connected devices are never merged`() async throws {
        let centre = try await Centre()
        for gateway in ["attic", "cellar"] {
            try await centre.sink(of: gateway).deliver(Entries.numbered(1...10))
        }
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "20")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.receptions") == "0")
    }

    @Test func `gateways that deliver at the same time, with faults and backlogs, count each advertisement once`()
        async throws
    {
        let centre = try await Centre()
        let proxy = try CuttingProxy(to: centre.server.port)
        var sinks: [PostgresSink] = []
        for number in 0..<6 {
            let port = number.isMultiple(of: 2) ? proxy.port : nil
            sinks.append(try await centre.sink(of: "gateway-\(number)", port: port))
        }
        try await withThrowingTaskGroup { group in
            for (number, sink) in sinks.enumerated() {
                group.addTask {
                    let heard = (1...400).map { packet in
                        let time = Self.time(Double(packet) * 3 + Double(number) * 0.01)
                        return Entries.heard(Int64(packet), at: time, 20, packet: Int64(packet % 256))
                    }
                    try await sink.deliver(heard, batch: 7 + number * 13)
                }
            }
            try await group.waitForAll()
        }
        #expect(try await Self.readings(centre).count == 400)
        let receptions = """
            SELECT count(*), count(DISTINCT (gateway, seq)), count(DISTINCT (reading_gateway, reading_seq))
            FROM gattherd.receptions
            """
        #expect(try await centre.rows(receptions) == [["2400", "2400", "400"]])
        #expect(try await centre.value("SELECT count(*) FROM gattherd.gateway_history") == "7200")
        let groups = """
            SELECT max(n), max(gateways) FROM (SELECT count(*) AS n, count(DISTINCT gateway) AS gateways
            FROM gattherd.receptions GROUP BY reading_gateway, reading_seq) AS g
            """
        #expect(try await centre.rows(groups) == [["6", "6"]])
        try await centre.expectSummaries()
    }

    @Test func `readings whose clock was wrong join those of others once it is corrected`() async throws {
        let centre = try await Centre()
        let (attic, cellar) = (try await centre.sink(of: "attic"), try await centre.sink(of: "cellar"))
        func heard(_ offset: Double) -> [JournalEntry] {
            (1...20).map { Entries.heard(Int64($0), at: Self.time(Double($0) * 10 + offset), 20, packet: Int64($0)) }
        }
        try await attic.deliver(heard(0))
        try await cellar.deliver(heard(-7200))
        #expect(try await Self.readings(centre).count == 40)
        let correction = ClockCorrection(after: 5, through: 20, shift: .seconds(7200))
        try await cellar.deliver(heard(-7200) + [.correction(correction, seq: 21)])
        #expect(try await Self.readings(centre).filter { $0[0] == "cellar" }.count == 5)
        let joined = "SELECT count(*) FROM gattherd.receptions WHERE reading_gateway <> gateway"
        #expect(try await centre.value(joined) == "15")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.gateway_history") == "120")
        let times = "SELECT min(ts), max(ts) FROM gattherd.gateway_history WHERE gateway = 'cellar' AND seq > 5"
        #expect(
            try await centre.rows(times) == [["\(Self.time(60).microseconds)", "\(Self.time(200).microseconds)"]]
        )
        try await centre.expectSummaries()
    }

    @Test func `a corrected reading that another gateway joins at the same moment stays`() async throws {
        let centre = try await Centre()
        let attic = try await centre.sink(of: "attic")
        try await attic.deliver([Entries.heard(1, at: Self.time(0), 20)])
        try await centre.sink(of: "cellar").deliver([Entries.heard(1, at: Self.time(600), 20)])
        _ = try await centre.sink(of: "shed").cursor(in: .test)
        let other = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await other.run("BEGIN")
        _ = try await other.run("SELECT id FROM gattherd.air FOR NO KEY UPDATE")
        let correction = ClockCorrection(after: 0, through: 1, shift: .seconds(600))
        async let faults = attic.deliver([.correction(correction, seq: 2)])
        while try await centre.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {}
        // The shed joins the reading of the attic, at its wrong time.
        _ = try await other.run(
            """
            INSERT INTO gattherd.reception (ts, seq, print, first_seq, first_journal, journal, air)
            SELECT r.ts, 1, r.print, r.seq, r.journal, j.id, r.air FROM gattherd.reception r, gattherd.journal j
            WHERE r.journal = (SELECT min(id) FROM gattherd.journal) AND j.id = (SELECT max(id) FROM gattherd.journal)
            """
        )
        _ = try await other.run("COMMIT")
        #expect(try await faults.isEmpty)
        #expect(try await Self.readings(centre).map { $0[0] } == ["attic", "cellar"])
        other.close()
    }

    @Test func `the retention drops receptions and duplicates with their samples`() async throws {
        let centre = try await Centre()
        for gateway in ["attic", "cellar"] {
            let old = Entries.time.advanced(by: .seconds(-60 * 86_400))
            try await centre.sink(of: gateway).deliver([
                Entries.heard(1, at: old, 20, packet: 1), Entries.heard(2, at: Self.time(0), 20, packet: 2),
            ])
        }
        _ = try await centre.rows(
            """
            UPDATE gattherd.retention SET keep = now() - to_timestamp(\(Entries.time.microseconds / 1_000_000) - 30 * 86400)
            WHERE kind = 'samples';
            UPDATE gattherd.extent SET came = to_timestamp(last_ts / 1e6);
            UPDATE gattherd.upkeep SET done = '-infinity'
            """
        )
        while try await centre.value("SELECT gattherd.maintain()") == "t" {}
        #expect(try await centre.value("SELECT count(*) FROM gattherd.receptions") == "2")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.gateway_history") == "6")
    }
}
