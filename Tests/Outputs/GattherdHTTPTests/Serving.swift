import GattherdHTTP
import GattherdLog
import GattherdSync

typealias Handler = @Sendable (HTTPRequest) async -> HTTPResponse

/// Runs `body`, which may block, while a server answers with `answer`; by default with the request's path.
func serve(
    _ limits: HTTPLimits = HTTPLimits(),
    _ answer: @escaping Handler = { HTTPResponse(200, type: "text/plain", Array("\($0.path)\n".utf8)) },
    while body: @escaping @Sendable (HTTPServer, UInt16) throws -> Void
) async throws {
    let server = HTTPServer(host: "127.0.0.1", port: 0, limits: limits, log: .silent)
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { await server.run(answer) }
        defer { group.cancelAll() }
        for await case let port? in server.port.watch() {
            return try await onThread { try body(server, port) }
        }
    }
}

/// Runs `body`, which may block, on a thread of its own.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { done in
        _ = NamedThread(name: "client") { done.resume(with: Result { try body() }) }
    }
}
