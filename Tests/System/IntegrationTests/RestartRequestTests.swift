import Foundation
import GattherdProcess
import TestKit
import Testing

/// Restarts that people ask for in the dashboard.
@Suite(.timeLimit(.minutes(2))) struct RestartRequestTests {
    private static let token = String(repeating: "t", count: 32)
    private static let promise = "GATTHERD_RESTART=on-status-75"

    private let folder: TemporaryFolder
    private let port: UInt16

    init() throws {
        folder = try TemporaryFolder()
        port = UInt16(try Broker.freePort())
        try folder.write(Self.token + "\n", to: "token")
        try write("")
    }

    private func write(_ more: String) throws {
        let text = """
            bluetooth: {bus: "unix:path=\(folder.file("no-bus"))"}
            history: {path: gattherd.db}
            http: {listen: "127.0.0.1:\(port)", token_file: token}
            \(more)
            """
        try folder.write(text, to: "gattherd.yaml")
    }

    private func start(_ environment: [String]) async throws -> ChildProcess {
        let words = ["run", "--config", folder.file("gattherd.yaml")]
        let daemon = try ChildProcess(
            Programs.path("gattherd"),
            words,
            environment: environment,
            errors: .null
        )
        try await eventually { (try? RawClient(port)) != nil }
        return daemon
    }

    private func send(_ method: String, _ path: String, token: String = token) throws -> String {
        let client = try RawClient(port)
        client.send(
            "\(method) /api/v1/\(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer \(token)\r\n"
                + "Content-Type: application/json\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        return client.readToEnd()
    }

    @Test func `a daemon that its supervisor restarts exits with status 75`() async throws {
        let daemon = try await start([Self.promise])
        #expect(try send("GET", "configuration").contains(#""can_restart":true"#))
        #expect(try send("POST", "restart", token: "wrong").contains(" 401 "))
        #expect(try send("POST", "restart").contains(" 202 "))
        #expect(await daemon.wait() == .exited(75))
    }

    @Test func `a requested restart happens although history cannot be closed`() async throws {
        let daemon = try await start([Self.promise])
        let sequence = folder.file("gattherd.db-seq")
        try await eventually { FileManager.default.fileExists(atPath: sequence) }
        // The last number cannot be written. The daemon may just write it, in a file of that name.
        try await eventually {
            (try? FileManager.default.createDirectory(atPath: sequence + ".new", withIntermediateDirectories: false))
                != nil
        }
        #expect(try send("POST", "restart").contains(" 202 "))
        #expect(await daemon.wait() == .exited(75))
    }

    @Test func `a daemon that could not start with its files stays`() async throws {
        let daemon = try await start([Self.promise])
        try write("zzz: 1")
        let refused = try send("POST", "restart")
        #expect(refused.contains(" 422 ") && refused.contains("zzz"))
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }

    @Test func `without a supervisor there is no restart`() async throws {
        let daemon = try await start([])
        #expect(try send("GET", "configuration").contains(#""can_restart":false"#))
        #expect(try send("POST", "restart").contains(" 503 "))
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }
}
