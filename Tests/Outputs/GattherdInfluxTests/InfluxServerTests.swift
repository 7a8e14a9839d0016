import FoundationEssentials
import GattherdHTTPClient
import GattherdInflux
import GattherdModel
import GattherdOutputs
import TestKit
import Testing

/// The sink against InfluxDB 1 itself.
@Suite(.timeLimit(.minutes(2))) struct InfluxServerTests {
    private func server(_ lines: [String] = []) async throws -> InfluxServer {
        let server = try InfluxServer(lines)
        try await server.start()
        try server.run("CREATE DATABASE home")
        return server
    }

    private func fault(_ sink: InfluxSink, _ entries: [JournalEntry]) async -> OutputFault? {
        do throws(OutputFault) {
            try await sink.write(entries)
            return nil
        } catch {
            return error
        }
    }

    @Test func `readings are found as they were`() async throws {
        let server = try await server()
        let sink = InfluxSink(try InfluxOptions(server.url))
        let text = "a \"b\" \\ c, d=e 'f'"
        let first = Readings.reading(
            (0, .integer(72)),
            (1, .boolean(true)),
            (2, .real(812.5)),
            (2, .integer(799)),
            seq: 1
        )
        let second = Readings.reading((0, .real(72.5)), (1, .boolean(false)), (3, .text(text)), seq: 2, source: .read)
        try await sink.write([.reading(first), .reading(second)])
        let rows = server.rows("SELECT bpm, contact, mode_text FROM heart_rate", database: "home")
        #expect(
            rows == [
                "heart_rate,,1795231205123456001,72,1,",
                "heart_rate,,1795231205123456002,72.5,0,\"a \"\"b\"\" \\ c, d=e 'f'\"",
            ]
        )
        #expect(
            server.rows("SELECT rr_interval FROM heart_rate GROUP BY element", database: "home") == [
                "heart_rate,element=0,1795231205123456001,812.5", "heart_rate,element=1,1795231205123456001,799",
            ]
        )
        let tags = server.rows("SHOW SERIES", database: "home").sorted()
        #expect(
            tags.contains { $0.hasSuffix("gateway=lab,profile=heart-rate,source=read\"") || $0.contains("source=read") }
        )
    }

    @Test func `repeated batches add nothing`() async throws {
        let server = try await server()
        let sink = InfluxSink(try InfluxOptions(server.url))
        for range in [1...500, 1...500, 250...750, 700...1000] as [ClosedRange<Int64>] {
            try await sink.write(Readings.numbered(range))
        }
        let rows = server.rows("SELECT bpm FROM heart_rate", database: "home")
        #expect(rows.compactMap { $0.split(separator: ",").last.flatMap { Int($0) } } == Array(1...1000))
    }

    @Test func `readings of one stream at the same microsecond are all kept`() async throws {
        let server = try await server()
        let readings = (Int64(1)...50).map { JournalEntry.reading(Readings.reading((0, .integer($0)), seq: $0)) }
        try await InfluxSink(try InfluxOptions(server.url)).write(readings)
        #expect(server.rows("SELECT count(bpm) FROM heart_rate", database: "home") == ["heart_rate,,0,50"])
    }

    @Test func `values of every type in every order never conflict`() async throws {
        let server = try await server()
        let sink = InfluxSink(try InfluxOptions(server.url))
        let values: [SampleValue] = [
            .integer(1), .real(1.5), .boolean(true), .text("x"), .null, .integer(.max), .text("1"), .real(-0.0),
        ]
        for (index, value) in (values + values.reversed()).enumerated() {
            try await sink.write([.reading(Readings.reading((0, value), seq: Int64(index)))])
        }
        #expect(server.rows("SELECT count(*) FROM heart_rate", database: "home") == ["heart_rate,,0,10,4"])
    }

    @Test func `names like InfluxDB's own are accepted`() async throws {
        let server = try await server()
        let sink = InfluxSink(try InfluxOptions(server.url))
        let names = ["time", "device", "source", "stream", "element", "a b", "a=b", "a,b", "a\\b", "a\\", "#", "ü"]
        for (index, name) in names.enumerated() {
            let stream = StreamDefinition(
                device: "d",
                profile: name,
                stream: "s",
                metrics: [MetricDescriptor(name: name), MetricDescriptor(name: name, isRepeated: true)]
            )
            let samples: [(Int, SampleValue)] = [(0, .integer(1)), (1, .text(name))]
            let reading = Readings.reading(samples[0], samples[1], seq: Int64(index), of: stream)
            #expect(await fault(sink, [.reading(reading)]) == nil, "\(name)")
        }
        let profiles = server.rows("SHOW TAG VALUES WITH KEY = profile", database: "home")
        #expect(profiles.count == names.count)
    }

    @Test func `missing databases and policies are named`() async throws {
        let server = try await server()
        let missing = InfluxSink(try InfluxOptions(server.url, .database("nope", retentionPolicy: nil)))
        let fault = try #require(await fault(missing, Readings.numbered(1...1)))
        #expect(fault.kind == .misconfigured)
        #expect(fault.detail.contains("database not found") && fault.detail.contains("create the database 'nope'"))
        let policy = InfluxSink(try InfluxOptions(server.url, .database("home", retentionPolicy: "weeks")))
        #expect(await self.fault(policy, Readings.numbered(1...1))?.detail.contains("influx.retention_policy") == true)
        try server.run("CREATE RETENTION POLICY weeks ON home DURATION 0s REPLICATION 1")
        try await policy.write(Readings.numbered(1...1))
        #expect(server.rows("SELECT bpm FROM weeks.heart_rate", database: "home").count == 1)
    }

    @Test func `a refused point does not lose the others of its batch`() async throws {
        let server = try await server()
        // Somebody else has made the field a text.
        _ = HTTPQuery.answer(server.port, to: "heart_rate mode=1 1", database: "home")
        _ = HTTPQuery.answer(server.port, to: "heart_rate,x=y bpm=\"text\" 1795231205123456001", database: "home")
        let sink = InfluxSink(try InfluxOptions(server.url))
        let fault = try #require(await fault(sink, Readings.numbered(1...3)))
        #expect(fault.kind == .refused)
        #expect(fault.detail.contains("field type conflict"))
        let other = Readings.reading((1, .integer(5)), seq: 9)
        try await sink.write([.reading(other)])
        #expect(server.rows("SELECT contact FROM heart_rate", database: "home").count == 1)
    }

    @Test func `points beyond the retention of the database are counted, and the others stored`() async throws {
        let server = try await server()
        try server.run("CREATE RETENTION POLICY day ON home DURATION 1d REPLICATION 1 DEFAULT")
        let sink = InfluxSink(try InfluxOptions(server.url))
        let now = Int64(Date.now.timeIntervalSince1970) * 1_000_000
        let readings = (1...40 as ClosedRange<Int64>).map { number in
            let time = Timestamp(microseconds: now - (number > 30 ? 0 : 3 * 86_400_000_000) + number)
            let pulse = (0, SampleValue.integer(number))
            return Readings.reading(pulse, (2, .real(800)), (2, .real(801)), seq: number, time: time)
        }
        let fault = try #require(await fault(sink, readings.map { .reading($0) }))
        #expect(fault.kind == .refused && fault.lost == 30)
        #expect(server.rows("SELECT count(bpm) FROM heart_rate", database: "home") == ["heart_rate,,0,10"])
    }

    @Test func `a body above the server's limit is split`() async throws {
        let server = try await server(["max-body-size = 5000"])
        var settings = try InfluxOptions(server.url)
        settings.compresses = false
        try await InfluxSink(settings).write(Readings.numbered(1...1000))
        #expect(server.rows("SELECT count(bpm) FROM heart_rate", database: "home") == ["heart_rate,,0,1000"])
    }

    @Test func `users with passwords are authenticated`() async throws {
        let server = try InfluxServer(["auth-enabled = true"])
        try await server.start()
        _ = HTTPQuery.post(
            server.port,
            "/query?q=" + HTTPQuery.encoded("CREATE USER root WITH PASSWORD 'r' WITH ALL PRIVILEGES")
        )
        let login = "&u=root&p=r"
        for statement in ["CREATE DATABASE home", "CREATE USER gate WITH PASSWORD 'pw'"] {
            _ = HTTPQuery.post(server.port, "/query?q=" + HTTPQuery.encoded(statement) + login)
        }
        var settings = try InfluxOptions(server.url)
        let nobody = try #require(await fault(InfluxSink(settings), Readings.numbered(1...1)))
        #expect(nobody.kind == .misconfigured && nobody.detail.contains("write influx.token_file"))
        settings.credentials = .password(user: "gate", "wrong")
        let wrong = try #require(await fault(InfluxSink(settings), Readings.numbered(1...1)))
        #expect(wrong.kind == .misconfigured && wrong.detail.contains("influx.password_file"))
        settings.credentials = .password(user: "gate", "pw")
        let powerless = try #require(await fault(InfluxSink(settings), Readings.numbered(1...1)))
        #expect(powerless.kind == .misconfigured && powerless.detail.contains("allowed to write to 'home'"))
        _ = HTTPQuery.post(server.port, "/query?q=" + HTTPQuery.encoded("GRANT WRITE ON home TO gate") + login)
        try await InfluxSink(settings).write(Readings.numbered(1...1))
    }

    @Test func `readings arrive over TLS`() async throws {
        let authority = try await Authority()
        let identity = try await authority.identity(for: "DNS:localhost")
        let server = try InfluxServer(
            [
                "https-enabled = true", "https-certificate = \"\(identity.certificate)\"",
                "https-private-key = \"\(identity.key)\"",
            ],
            usesTLS: true
        )
        try await server.start()
        var settings = try InfluxOptions(server.url)
        #expect(await fault(InfluxSink(settings), Readings.numbered(1...1))?.detail.contains("influx.tls.ca") == true)
        settings.tls.ca = authority.certificate
        let fault = await fault(InfluxSink(settings), Readings.numbered(1...1))
        // The database does not exist: the request was read.
        #expect(fault?.detail.contains("database not found") == true)
        let plain = InfluxSink(try InfluxOptions("http://localhost:\(server.port)"))
        #expect(await self.fault(plain, Readings.numbered(1...1))?.kind == .misconfigured)
    }
}

/// The sink against VictoriaMetrics itself.
@Suite(.timeLimit(.minutes(2))) struct VictoriaServerTests {
    @Test(arguments: [
        InfluxOptions.Database.database("home", retentionPolicy: nil), .bucket("home", organisation: nil),
    ]) func `overlapping batches give each number once`(database: InfluxOptions.Database) async throws {
        let server = try VictoriaServer()
        try await server.start()
        let sink = InfluxSink(try InfluxOptions(server.url, database))
        for range in [1...300, 200...500] as [ClosedRange<Int64>] { try await sink.write(Readings.numbered(range)) }
        let lines = server.export("heart_rate_.*")
        let series = try #require(lines.first)
        #expect(lines.count == 1)
        #expect(series.contains("\"__name__\":\"heart_rate_bpm\"") && series.contains("\"device\":\"strap\""))
        let expected = (1...500).map { "\($0)" }.joined(separator: ",")
        #expect(series.contains("\"values\":[\(expected)]"))
        let first = Readings.time.microseconds / 1000 + 1
        #expect(series.contains("\"timestamps\":[\(first),\(first + 1),"))
    }

    @Test func `a path that does not exist at the server is a mistake of the configuration`() async throws {
        let server = try VictoriaServer()
        try await server.start()
        let sink = InfluxSink(try InfluxOptions(server.url + "/elsewhere"))
        let error = await #expect(throws: OutputFault.self) { try await sink.write(Readings.numbered(1...1)) }
        #expect(error?.kind == .misconfigured)
    }
}
