import GattherdModel
import GattherdOutputs
import GattherdSync
import TestKit

@testable import GattherdPostgres

/// A central database of a test's own, with gateways.
final class Centre: Sendable {
    static let isAvailable = PostgresServer.programs != nil
    static let database = "fleet"

    let server: PostgresServer
    let fleet: FleetDatabase

    /// Starts a server and installs the schema.
    init(settings: [String] = [], identity: Authority.Identity? = nil) async throws {
        server = try await PostgresServer(settings: settings, identity: identity)
        try await server.start()
        try await server.rows("CREATE DATABASE fleet")
        let url = try Self.url(server.port, user: "postgres")
        fleet = FleetDatabase(PostgresClient(url), url: url)
        _ = try await fleet.install(isNew: true)
    }

    /// A server that has the schema already.
    init(server: PostgresServer) throws {
        self.server = server
        let url = try Self.url(server.port, user: "postgres")
        fleet = FleetDatabase(PostgresClient(url), url: url)
    }

    static func url(_ port: Int, user: String? = nil) throws -> PostgresURL {
        try PostgresURL("postgresql://\(user.map { $0 + "@" } ?? "")127.0.0.1:\(port)/\(database)")
    }

    /// Adds a gateway and returns its sink, through another port if given.
    func sink(
        of gateway: String,
        port: Int? = nil,
        named name: String? = nil,
        devices: [SeenDevice] = []
    ) async throws -> PostgresSink {
        let credentials = try await fleet.add(gateway: gateway)
        return try sink(of: gateway, credentials, port: port, named: name, devices: devices)
    }

    func sink(
        of gateway: String,
        _ credentials: FleetDatabase.Credentials,
        port: Int? = nil,
        named name: String? = nil,
        daemon: DaemonRun = .current,
        output: String = "postgres",
        writers: CentreWriters = CentreWriters(),
        devices: [SeenDevice] = []
    ) throws -> PostgresSink {
        let url = try Self.url(port ?? server.port)
        let client = PostgresClient(url, user: credentials.role) { credentials.password }
        return PostgresSink(
            client,
            url: url,
            gateway: name ?? gateway,
            version: "1.2.3",
            daemon: daemon,
            output: output,
            writers: writers,
            devices: { devices }
        )
    }

    func rows(_ sql: String) async throws -> [[String]] {
        try await server.rows(sql, database: Self.database)
    }

    func value(_ sql: String) async throws -> String {
        try await server.value(sql, database: Self.database)
    }
}

extension PostgresSink {
    /// Writes entries as the framework does, after the centre's cursor, again after each fault; then continues
    /// corrections.
    ///
    /// - Returns: The faults.
    @discardableResult
    func deliver(
        _ entries: [JournalEntry],
        in epoch: JournalEpoch = .test,
        batch: Int = 100,
        afterFault: (OutputFault) async throws -> Void = { _ in }
    ) async throws -> [OutputFault] {
        var faults: [OutputFault] = []
        var cursor: Int64?
        while true {
            do throws(OutputFault) {
                let start = if let cursor { cursor } else { try await self.cursor(in: epoch) }
                let rest = Array(entries.filter { $0.seq > start }.prefix(batch))
                guard let last = rest.last else { break }
                try await write(rest, after: start, through: last.seq)
                cursor = last.seq
            } catch {
                faults.append(error)
                guard error.kind == .unavailable, faults.count < 2000 else { throw error }
                cursor = nil
                try await afterFault(error)
            }
        }
        await continueCorrections()
        return faults
    }
}

extension JournalEpoch {
    static let test = JournalEpoch("0123456789abcdef0123456789abcdef")
    static let other = JournalEpoch("ffffffffffffffffffffffffffffffff")
}

/// Entries for tests.
enum Entries {
    static let strap = StreamDefinition(
        device: "strap",
        profile: "heart-rate",
        stream: "heart_rate",
        metrics: [
            MetricDescriptor(name: "bpm", unit: "bpm"), MetricDescriptor(name: "contact", kind: .state),
            MetricDescriptor(name: "rr_interval", unit: "ms", isRepeated: true),
            MetricDescriptor(name: "mode", kind: .state),
        ]
    )
    /// 2026-11-21T03:20:05.123456Z.
    static let time = Timestamp(microseconds: 1_795_231_205_123_456)

    static func reading(
        _ seq: Int64,
        at time: Timestamp = time,
        _ samples: (Int, SampleValue)...,
        of stream: StreamDefinition = strap,
        source: ReadingSource = .notify
    ) -> JournalEntry {
        let samples = samples.map { Sample(metric: $0.0, value: $0.1) }
        return .reading(JournalReading(seq: seq, stream: stream, time: time, source: source, samples: samples[...]))
    }

    /// A sensor that advertises a temperature and a counter.
    static let tag = StreamDefinition(
        device: "tag",
        profile: "bthome",
        stream: "bthome",
        metrics: [
            MetricDescriptor(name: "temperature", unit: "°C"), MetricDescriptor(name: "packet_id", kind: .counter),
            .signalStrength,
        ]
    )

    /// A heard advertisement.
    static func heard(
        _ seq: Int64,
        at time: Timestamp,
        _ temperature: Double,
        packet: Int64? = nil,
        rssi: Int64 = -60
    ) -> JournalEntry {
        var samples = [Sample(metric: 0, value: .real(temperature))]
        if let packet { samples.append(Sample(metric: 1, value: .integer(packet))) }
        samples.append(Sample(metric: 2, value: .integer(rssi)))
        return .reading(JournalReading(seq: seq, stream: tag, time: time, source: .advert, samples: samples[...]))
    }

    /// Readings with their number as value, `step` apart.
    static func numbered(
        _ range: ClosedRange<Int64>,
        from start: Timestamp = time,
        step: Duration = .milliseconds(10)
    ) -> [JournalEntry] {
        range.map { reading($0, at: start.advanced(by: step * Int(clamping: $0)), (0, .integer($0))) }
    }
}
