import FoundationEssentials
import GattherdLog
import GattherdModel
import GattherdOutputs
import GattherdPostgres
import Glibc
import TestKit

/// A PostgreSQL that writes to the disk as one in service does.
struct BenchmarkCentre: Sendable {
    /// The centre lacks sent entries.
    struct Incomplete: Error {
        let found: String
    }

    private static let database = "fleet"
    private let server: PostgresServer
    private let fleet: FleetDatabase

    var url: String { "postgresql://postgres@127.0.0.1:\(server.port)/\(Self.database)" }

    init() async throws {
        let settings = [
            "fsync=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=2GB", "autovacuum=on",
        ]
        server = try await PostgresServer(settings: settings)
        try await server.start()
        try await server.rows("CREATE DATABASE \(Self.database)")
        let url = try PostgresURL("postgresql://postgres@127.0.0.1:\(server.port)/\(Self.database)")
        fleet = FleetDatabase(PostgresClient(url), url: url)
        _ = try await fleet.install(isNew: true)
    }

    /// Adds a gateway that delivers a journal.
    func gateway(_ name: String, _ journal: any JournalConsumer) async throws -> BenchmarkGateway {
        let credentials = try await fleet.add(gateway: name)
        let url = try PostgresURL("postgresql://127.0.0.1:\(server.port)/\(Self.database)")
        let client = PostgresClient(url, user: credentials.role) { credentials.password }
        let context = OutputContext(
            name: "postgres",
            kind: "postgres",
            gateway: name,
            journal: journal,
            log: .silent,
            record: { _ in },
            readSecret: { (path, _) throws(OutputError) in throw OutputError(path) }
        )
        let sink = PostgresSink(client, url: url, gateway: name, version: "1")
        return BenchmarkGateway(output: BatchOutput(context, target: name, sink: sink), journal: journal)
    }

    /// Makes the table of the peer: a value of a device at a time, with an index by device.
    func prepareForInserts() async throws {
        try await server.rows(
            """
            CREATE TABLE plain (ts timestamptz NOT NULL, device text NOT NULL, metric text NOT NULL,
                value double precision);
            CREATE INDEX ON plain (device, ts)
            """,
            database: Self.database
        )
    }

    /// Returns readings a second, the CPU time of this process and of the server for each, and the duration.
    func measure(readings: Int, _ body: () async throws -> Void) async throws -> [Double?] {
        let before = (own: Self.ownTime, server: serverTime)
        let duration = try await seconds(body)
        let count = Double(readings)
        return [
            count / duration, (Self.ownTime - before.own) * 1e6 / count, (serverTime - before.server) * 1e6 / count,
            duration,
        ]
    }

    /// Stops the server, and throws unless it has this number of samples.
    func stop(expecting count: Int? = nil) async throws {
        if let count {
            let sql = "SELECT count(*) FROM gattherd.gateway_history"
            let found = try await server.value(sql, database: Self.database)
            guard found == "\(count)" else { throw Incomplete(found: found) }
        }
        await server.stop()
    }

    /// The CPU time of this process in seconds.
    private static var ownTime: Double {
        var usage = rusage()
        unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
    }

    /// The CPU time of the server and its children, those that have ended included, in seconds.
    private var serverTime: Double {
        guard let main = server.pid else { return 0 }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        let ticks = names.compactMap { Int32($0) }.compactMap { ProcessTimes($0) }.map { times in
            times.pid == main ? times.own + times.endedChildren : times.parent == main ? times.own : 0
        }
        return Double(ticks.reduce(0, +)) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}

/// The CPU times of a process, in ticks.
private struct ProcessTimes {
    let pid: Int32
    let parent: Int32
    let own: Int
    let endedChildren: Int

    init?(_ pid: Int32) {
        guard let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            let end = text.lastIndex(of: ")")
        else { return nil }
        // The fields after the name: state, parent; the times are the 14th to 17th of the line.
        let fields = text[text.index(after: end)...].split(separator: " ").map { Int($0) ?? 0 }
        guard fields.count > 14 else { return nil }
        (self.pid, parent) = (pid, Int32(truncatingIfNeeded: fields[1]))
        (own, endedChildren) = (fields[11] + fields[12], fields[13] + fields[14])
    }
}

/// A gateway's output and its journal.
struct BenchmarkGateway: Sendable {
    let output: BatchOutput
    let journal: any JournalConsumer

    /// Runs the output until the centre has everything.
    func deliver() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await output.run() }
            var head: Int64 = 0
            for await seq in journal.heads() {
                head = seq
                break
            }
            while output.status.cursor ?? -1 < head { try? await Task.sleep(for: .milliseconds(5)) }
            await output.stop(within: .seconds(1))
        }
    }
}
