package import GattherdLog
package import GattherdSync

/// An HTTP server: libmicrohttpd on an event loop of its own.
///
/// ``HTTPLimits`` bounds connections, sizes and times. Paths and access rules belong to ``HTTPService``.
package final class HTTPServer: Sendable {
    package let counters = HTTPCounters()
    /// The port that the server listens on; `nil` while it does not.
    package let port = LatestValue<UInt16?>(nil)
    /// The pause between two attempts to listen.
    private static let retryPause = Duration.seconds(5)

    let limits: HTTPLimits
    private let host: String
    private let requestedPort: UInt16
    private let log: Log
    private let loop = EventLoop(name: "http")
    private let connections: LoopConfined<HTTPConnections>
    private let requests: AsyncStream<PendingHTTPRequest>

    /// Creates a server; ``run(_:)`` makes it listen.
    ///
    /// - Parameters:
    ///   - host: A name or an address of this host.
    ///   - port: The port; 0 for any free one.
    ///   - limits: The limits for clients.
    ///   - log: The log.
    package init(host: String, port: UInt16, limits: HTTPLimits = HTTPLimits(), log: Log) {
        self.host = host
        requestedPort = port
        self.limits = limits
        self.log = log
        // A connection has at most one open request.
        let (requests, continuation) = AsyncStream.makeStream(
            of: PendingHTTPRequest.self,
            bufferingPolicy: .bufferingOldest(limits.connections)
        )
        self.requests = requests
        connections = LoopConfined(
            HTTPConnections(loop: loop, limits: limits, counters: counters, requests: continuation),
            to: loop
        )
    }

    deinit {
        loop.stop()
    }

    /// Serves requests until cancelled.
    ///
    /// Retries every few seconds if it cannot listen.
    package func run(_ answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse) async {
        guard await listen() else { return }
        await withDiscardingTaskGroup { group in
            for await pending in requests {
                group.addTask {
                    self.send(await answer(pending.request), to: pending.exchange)
                }
            }
        }
        port.set(nil)
        await withCheckedContinuation { done in
            loop.execute {
                self.connections.value.close()
                done.resume()
            }
        }
    }

    private func send(_ response: HTTPResponse, to exchange: UInt64) {
        if case .events(let channel) = response.content {
            channel.onArrival { [loop, connections] in loop.execute { connections.value.wake(exchange) } }
        }
        loop.execute { self.connections.value.respond(to: exchange, with: response) }
    }

    /// Waits until the server listens; false if cancelled.
    private func listen() async -> Bool {
        while !Task.isCancelled {
            do throws(ListenError) {
                let port = try await start().get()
                self.port.set(port)
                log(.notice, "http server started", [LogField("host", host), LogField("port", port)])
                return true
            } catch {
                log(.error, "http server cannot start; trying again", [LogField("error", error.description)])
                try? await Task.sleep(for: Self.retryPause, clock: .loop)
            }
        }
        return false
    }

    /// Starts listening on the loop's thread, as resolving a name may block.
    private func start() async -> Result<UInt16, ListenError> {
        await withCheckedContinuation { done in
            loop.execute {
                let result = Result { () throws(ListenError) in
                    let socket = try ListeningSocket(host: self.host, port: self.requestedPort)
                    try self.connections.value.start(on: socket)
                    return socket.port
                }
                done.resume(returning: result)
            }
        }
    }
}
