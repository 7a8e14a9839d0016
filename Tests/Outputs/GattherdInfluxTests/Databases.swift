import Foundation
import GattherdConfig
import GattherdInflux
import GattherdSync
import Glibc
import TestKit

/// A database program that `make` has unpacked into `.build/servers`; nothing is installed or started elsewhere.
enum ServerPrograms {
    struct Missing: Error, CustomStringConvertible {
        let description: String
    }

    static func path(_ name: String) throws -> String {
        let path = Checkout.root.appending(path: ".build/servers/usr/bin/\(name)").path
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw Missing(description: "no \(path); run: make test-servers")
        }
        return path
    }
}

/// A private InfluxDB 1 on loopback, whose files outlive its process.
final class InfluxServer: Sendable {
    let port: Int
    private let folder: TemporaryFolder
    private let process = Locked<ChildProcess?>(nil)
    private let usesTLS: Bool

    var url: String { usesTLS ? "https://localhost:\(port)" : "http://127.0.0.1:\(port)" }

    init(_ lines: [String] = [], usesTLS: Bool = false) throws {
        folder = try TemporaryFolder()
        port = try Broker.freePort()
        self.usesTLS = usesTLS
        let path = folder.path
        let settings = """
            reporting-enabled = false
            bind-address = "127.0.0.1:\(try Broker.freePort())"
            [meta]
              dir = "\(path)/meta"
            [data]
              dir = "\(path)/data"
              wal-dir = "\(path)/wal"
            [monitor]
              store-enabled = false
            [http]
              bind-address = "127.0.0.1:\(port)"
              log-enabled = false
              \(lines.joined(separator: "\n  "))

            """
        try folder.write(settings, to: "influxdb.conf")
    }

    deinit {
        process.withLock { $0?.signal(SIGKILL) }
    }

    /// Starts or restarts the server and waits until it answers.
    func start() async throws {
        let output = try OutputFile(folder.file("log"))
        let child = try ChildProcess(
            try ServerPrograms.path("influxd"),
            ["-config", folder.file("influxdb.conf")],
            output: .descriptor(output.descriptor),
            errors: .descriptor(output.descriptor)
        )
        process.withLock { $0 = child }
        try await eventually {
            if child.exitStatus != nil { throw ServerPrograms.Missing(description: "influxd ended: \(output.text)") }
            return usesTLS ? output.text.contains("Listening for signals") : HTTPQuery.get(port, "/ping") != nil
        }
    }

    func kill() async {
        guard let child = process.withLock({ $0 }) else { return }
        child.signal(SIGKILL)
        _ = await child.wait()
    }

    /// Runs a statement that changes something.
    func run(_ statement: String) throws {
        let answer = HTTPQuery.post(port, "/query?q=\(HTTPQuery.encoded(statement))")
        guard let answer, !answer.contains("error") else {
            throw ServerPrograms.Missing(description: "'\(statement)' fails: \(answer ?? "no answer")")
        }
    }

    /// Returns the rows of a query as lines of CSV, without the headings.
    func rows(_ query: String, database: String) -> [String] {
        let path = "/query?db=\(database)&epoch=ns&q=\(HTTPQuery.encoded(query))"
        let answer = HTTPQuery.get(port, path, headers: ["Accept: application/csv"]) ?? ""
        return answer.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("name,") }
    }
}

/// A private VictoriaMetrics on loopback.
final class VictoriaServer: Sendable {
    let port: Int
    private let folder: TemporaryFolder
    private let process = Locked<ChildProcess?>(nil)

    var url: String { "http://127.0.0.1:\(port)" }

    init() throws {
        folder = try TemporaryFolder()
        port = try Broker.freePort()
    }

    deinit {
        process.withLock { $0?.signal(SIGKILL) }
    }

    func start() async throws {
        let arguments = [
            "-httpListenAddr=127.0.0.1:\(port)", "-storageDataPath=\(folder.file("data"))", "-retentionPeriod=100y",
            "-dedup.minScrapeInterval=1ms", "-memory.allowedBytes=64MB",
        ]
        let child = try ChildProcess(
            try ServerPrograms.path("victoria-metrics"),
            arguments,
            output: .null,
            errors: .null
        )
        process.withLock { $0 = child }
        try await eventually { HTTPQuery.get(port, "/health") == "OK" }
    }

    /// Returns all samples of the series whose names match, as JSON lines.
    func export(_ pattern: String) -> [String] {
        _ = HTTPQuery.get(port, "/internal/force_flush")
        let match = HTTPQuery.encoded("{__name__=~\"\(pattern)\"}")
        let answer = HTTPQuery.get(port, "/api/v1/export?start=0&match[]=\(match)") ?? ""
        return answer.split(separator: "\n").map(String.init).sorted()
    }
}

/// Requests of HTTP 1.0, which have no chunks in their answers.
enum HTTPQuery {
    static func get(_ port: Int, _ path: String, headers: [String] = []) -> String? {
        answer(port, (["GET \(path) HTTP/1.0"] + headers).joined(separator: "\r\n") + "\r\n\r\n")
    }

    static func post(_ port: Int, _ path: String) -> String? {
        answer(port, "POST \(path) HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
    }

    /// Writes a line as another program does.
    static func answer(_ port: Int, to line: String, database: String) -> String? {
        let head = "POST /write?db=\(database)&precision=ns HTTP/1.0\r\nContent-Length: \(line.utf8.count)\r\n\r\n"
        return answer(port, head + line)
    }

    private static func answer(_ port: Int, _ request: String) -> String? {
        guard let client = try? RawClient(UInt16(port)), client.send(request) else { return nil }
        let answer = client.readToEnd()
        guard let end = answer.range(of: "\r\n\r\n") else { return nil }
        return String(answer[end.upperBound...])
    }

    static func encoded(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }
}

extension InfluxOptions {
    /// Settings for a test's own server.
    init(_ url: String, _ database: Database = .database("home", retentionPolicy: nil)) throws {
        guard let url = ServerURL(url) else { throw ServerPrograms.Missing(description: "'\(url)' is no URL") }
        self.init(gateway: "lab", url: url, database: database)
    }
}
