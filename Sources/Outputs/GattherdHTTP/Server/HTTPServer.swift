public import GattherdLog
public import GattherdSync

/// Answers HTTP requests by libmicrohttpd, which runs on an event loop of its own.
///
/// Connections, sizes and times are bounded by ``HTTPLimits``. It knows nothing of paths or of who may do what.
public final class HTTPServer: Sendable {
    public let counters = HTTPCounters()
    /// The port that it listens on; `nil` before and after.
    public let port = LatestValue<UInt16?>(nil)
    let limits: HTTPLimits
    private let host: String
    private let wantedPort: UInt16
    private let log: Log
    private let loop = EventLoop(name: "http")
    private let connections: LoopConfined<HTTPConnections>
    private let questions: AsyncStream<PendingHTTPRequest>

    /// Listens to nobody before ``run(_:)``.
    ///
    /// - Parameters:
    ///   - host: A name or an address of this host.
    ///   - port: 0 for any that is free.
    ///   - limits: What clients may have.
    ///   - log: For people.
    public init(host: String, port: UInt16, limits: HTTPLimits = HTTPLimits(), log: Log) {
        self.host = host
        wantedPort = port
        self.limits = limits
        self.log = log
        // A connection has one question at most.
        let (questions, post) = AsyncStream.makeStream(
            of: PendingHTTPRequest.self,
            bufferingPolicy: .bufferingOldest(limits.connections)
        )
        self.questions = questions
        connections = LoopConfined(
            HTTPConnections(loop: loop, limits: limits, counters: counters, post: post),
            to: loop
        )
    }

    deinit {
        loop.stop()
    }

    /// Answers until cancelled; while it cannot listen, it tries again every few seconds.
    public func run(_ answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse) async {
        guard await listen() else { return }
        await withDiscardingTaskGroup { group in
            for await question in questions {
                group.addTask {
                    self.send(await answer(question.request), to: question.exchange)
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
        loop.execute { self.connections.value.answer(exchange, with: response) }
    }

    /// False when cancelled.
    private func listen() async -> Bool {
        while !Task.isCancelled {
            do throws(ListenError) {
                let port = try await start().get()
                self.port.set(port)
                log(.notice, "http is served", [LogField("host", host), LogField("port", port)])
                return true
            } catch {
                log(.error, "http is not served; trying again", [LogField("error", error.description)])
                try? await Task.sleep(for: .seconds(5), clock: .loop)
            }
        }
        return false
    }

    /// On the loop, for a name may have to be looked up.
    private func start() async -> Result<UInt16, ListenError> {
        await withCheckedContinuation { done in
            loop.execute {
                let result = Result { () throws(ListenError) in
                    let socket = try ListeningSocket(host: self.host, port: self.wantedPort)
                    try self.connections.value.start(on: socket)
                    return socket.port
                }
                done.resume(returning: result)
            }
        }
    }
}
