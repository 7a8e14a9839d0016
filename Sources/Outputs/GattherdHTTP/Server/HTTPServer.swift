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
    ///
    /// - Parameters:
    ///   - bodyLimit: Returns the maximum number of bytes of the body of a request whose head has arrived; `nil` for
    ///     the limit of all requests. Called on the loop's thread.
    ///   - answer: Returns the response to a request. Its task is cancelled when the client of a GET or HEAD request
    ///     leaves; what a POST request changes is completed.
    package func run(
        bodyLimit: (@Sendable (HTTPRequest) -> Int)? = nil,
        _ answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
    ) async {
        if let bodyLimit { loop.execute { self.connections.value.bodyLimit = bodyLimit } }
        guard await listen() else { return }
        await withDiscardingTaskGroup { group in
            for await pending in requests {
                group.addTask {
                    self.send(await Self.response(to: pending, answer), to: pending.exchange)
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

    /// Returns the response to a request; cancels `answer` when the client of a reading request leaves.
    private static func response(
        to pending: PendingHTTPRequest,
        _ answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
    ) async -> HTTPResponse {
        guard pending.request.method != .post else { return await answer(pending.request) }
        return await withTaskGroup(of: HTTPResponse?.self) { group in
            group.addTask { await answer(pending.request) }
            group.addTask {
                for await hasLeft in pending.hangUp.watch() where hasLeft { break }
                return nil
            }
            var response: HTTPResponse?
            while let next = await group.next() {
                group.cancelAll()
                response = response ?? next
            }
            return response ?? .text(503, "cancelled")
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

/// The limits of a server.
package struct HTTPLimits: Hashable, Sendable {
    /// The maximum number of simultaneous connections; others wait until one ends.
    package var connections = 128
    /// The maximum number of simultaneous connections from one address.
    package var connectionsPerAddress = 64
    /// The maximum number of simultaneous event streams.
    package var eventStreams = 32
    /// The maximum number of bytes of the request line and headers, and of the headers of the response.
    package var head = 16_384
    /// The maximum number of bytes of any other request body.
    package var body = 4096
    /// The maximum number of bytes of a request body with a file of the configuration, in JSON.
    package var fileBody = 786_432
    /// The time limit for the head of a request, and again for its body.
    package var requestTime = Duration.seconds(10)
    /// The time limit for reading a response, except event streams.
    package var responseTime = Duration.seconds(60)
    /// The time limit between two requests of a connection.
    package var idleTime = Duration.seconds(30)
    /// The time limit without a single byte while one is expected, in whole seconds.
    package var stallTime = Duration.seconds(15)
    /// The time limit for the acknowledgement of sent bytes by the client's host.
    package var silenceTime = Duration.seconds(30)
    /// The maximum number of bytes in the queue of an event stream.
    package var eventQueue = 1_048_576

    /// The interval between messages of an event stream.
    package var eventPeriod = Duration.milliseconds(250)

    package init() {}
}

/// The counters of a server.
package struct HTTPCounters: Sendable {
    /// Responses by the first digit of their status, 1 to 5.
    private let classes = (1...5).map { _ in
        Counter("http_responses_total", "HTTP responses by class of status codes")
    }
    package let connections = Counter("http_connections_total", "HTTP connections")
    package let slowClients = Counter(
        "http_slow_clients_total",
        "HTTP connections closed because the client was too slow"
    )
    package let refused = Counter("http_requests_refused_total", "HTTP requests refused by the access rules")
    package let eventsDropped = Counter(
        "http_events_dropped_total",
        "Messages that slow readers of the event stream skipped"
    )

    /// Returns the counter of a class of status codes, 1 to 5.
    package func responses(hundred: Int) -> Counter? {
        classes.indices.contains(hundred - 1) ? classes[hundred - 1] : nil
    }

    init() {}

    /// All counters except the responses.
    var all: [Counter] { [connections, slowClients, refused, eventsDropped] }

    var responses: MetricFamily {
        let points = classes.enumerated().map { MetricFamily.Point(Double($1.value), ["code": "\($0 + 1)xx"]) }
        return MetricFamily(
            "gattherd_http_responses_total",
            .counter,
            "HTTP responses by class of status codes",
            points
        )
    }
}
