import CMicroHTTPD
import GattherdLog
import GattherdSync
import Glibc

/// A request that waits for its answer.
struct PendingHTTPRequest: Sendable {
    let exchange: UInt64
    let request: HTTPRequest
}

/// The connections of an ``HTTPServer``; every call, also libmicrohttpd's, is on the loop's thread.
final class HTTPConnections {
    private let loop: EventLoop
    private let limits: HTTPLimits
    private let counters: HTTPCounters
    private let post: AsyncStream<PendingHTTPRequest>.Continuation
    private var daemon: MicroHTTPDaemon?
    private var wakeup: LoopTimer?
    /// When each connection is given up, by its descriptor; no timer while nothing is expected of the client.
    private var deadlines: [Int32: LoopTimer?] = [:]
    private var exchanges: [UInt64: HTTPExchange] = [:]
    private var lastExchange: UInt64 = 0
    /// A connection has ended: libmicrohttpd (0.9.75) looks for who waited for that only when it runs once more.
    private var hasRoom = false

    init(
        loop: EventLoop,
        limits: HTTPLimits,
        counters: HTTPCounters,
        post: AsyncStream<PendingHTTPRequest>.Continuation
    ) {
        self.loop = loop
        self.limits = limits
        self.counters = counters
        self.post = post
    }

    /// Serves who connects to `socket`.
    ///
    /// - Throws: ``ListenError`` when there is no memory or no descriptor for it.
    func start(on socket: ListeningSocket) throws(ListenError) {
        guard let daemon = MicroHTTPDaemon(on: socket, limits, owner: self) else {
            throw ListenError(description: "libmicrohttpd cannot be started")
        }
        self.daemon = daemon
        do throws(WatchError) {
            try loop.watch(daemon.pollDescriptor, for: .readable) { [unowned self] _ in step() }
        } catch {
            self.daemon = nil
            throw ListenError(description: error.description)
        }
        step()
    }

    /// Gives an answer, unless the client has gone meanwhile.
    func answer(_ exchange: UInt64, with response: HTTPResponse) {
        guard let exchange = exchanges[exchange] else {
            if case .events(let channel) = response.content { channel.abandon() }
            return
        }
        exchange.phase = .answered(response)
        exchange.resume()
        step()
    }

    /// Something has come for a reader of events.
    func wake(_ exchange: UInt64) {
        guard let exchange = exchanges[exchange], case .sending = exchange.phase, exchange.isSuspended else { return }
        exchange.resume()
        step()
    }

    /// Ends all connections and listens no longer.
    func close() {
        guard let daemon else { return }
        loop.unwatch(daemon.pollDescriptor)
        if let wakeup { loop.cancel(wakeup) }
        // The library must not be stopped while a connection is suspended.
        for exchange in exchanges.values { exchange.resume() }
        self.daemon = nil
    }

    private func step() {
        guard let daemon else { return }
        repeat {
            hasRoom = false
            daemon.run()
        } while hasRoom
        if let wakeup { loop.cancel(wakeup) }
        wakeup = daemon.timeout.map { timeout in loop.schedule(after: timeout) { [unowned self] in step() } }
    }
}

// MARK: - What libmicrohttpd calls

extension HTTPConnections {
    /// Borrows the connections that own the daemon.
    static func at(_ pointer: UnsafeMutableRawPointer?) -> HTTPConnections? {
        unsafe pointer.map { unsafe Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }

    func connection(_ descriptor: Int32, hasBegun: Bool) {
        guard hasBegun else {
            hasRoom = true
            expect(nil, on: descriptor)
            deadlines.removeValue(forKey: descriptor)
            return
        }
        counters.connections.add()
        deadlines.updateValue(nil, forKey: descriptor)
        expect(limits.requestTime, on: descriptor)
    }

    /// Called once the headers are there, for each part of the body, at its end, and after each suspension.
    func receive(
        _ connection: OpaquePointer?,
        _ url: UnsafePointer<CChar>?,
        _ method: UnsafePointer<CChar>?,
        _ upload: UnsafePointer<CChar>?,
        _ count: UnsafeMutablePointer<Int>?,
        _ context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
    ) -> MHD_Result {
        guard let connection = unsafe connection, let context = unsafe context, let count = unsafe count else {
            return .NO
        }
        guard let known = unsafe context.pointee else {
            let request = unsafe HTTPRequest(connection, url: url, method: method)
            let exchange = unsafe begin(connection, request)
            unsafe context.pointee = Unmanaged.passRetained(exchange).toOpaque()
            return refuse(exchange, isKnownMethod: request != nil)
        }
        let exchange = unsafe Unmanaged<HTTPExchange>.fromOpaque(known).takeUnretainedValue()
        guard unsafe count.pointee > 0 else { return proceed(exchange) }
        guard unsafe exchange.request.body.count + count.pointee <= limits.body else { return .NO }
        unsafe exchange.request.body += UnsafeRawBufferPointer(start: upload, count: count.pointee)
        unsafe count.pointee = 0
        return .YES
    }

    func complete(_ context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?) {
        guard let context = unsafe context, let known = unsafe context.pointee else { return }
        unsafe context.pointee = nil
        let exchange = unsafe Unmanaged<HTTPExchange>.fromOpaque(known).takeRetainedValue()
        exchanges[exchange.id] = nil
        expect(limits.idleTime, on: exchange.descriptor)
    }
}

extension HTTPConnections {
    private func begin(_ connection: OpaquePointer, _ request: HTTPRequest?) -> HTTPExchange {
        lastExchange += 1
        let exchange = unsafe HTTPExchange(id: lastExchange, connection, request ?? HTTPRequest(.get, "/"))
        exchanges[exchange.id] = exchange
        expect(limits.requestTime, on: exchange.descriptor)
        return exchange
    }

    /// Says at once what is wrong with the head of a request, before there is any body.
    private func refuse(_ exchange: HTTPExchange, isKnownMethod: Bool) -> MHD_Result {
        guard isKnownMethod else {
            return send(.text(405, "use GET, HEAD or POST").with("Allow", "GET, HEAD, POST"), to: exchange)
        }
        let headers = exchange.request.headers
        guard headers["transfer-encoding"] == nil else {
            return send(.text(411, "send a body with its Content-Length"), to: exchange)
        }
        guard let length = headers["content-length"] else { return .YES }
        guard let octets = Int(length), octets <= limits.body else {
            return send(.text(413, "a body has at most \(limits.body) octets"), to: exchange)
        }
        return .YES
    }

    private func proceed(_ exchange: HTTPExchange) -> MHD_Result {
        switch exchange.phase {
        case .receiving:
            exchange.phase = .asked
            expect(nil, on: exchange.descriptor)
            if case .enqueued = post.yield(PendingHTTPRequest(exchange: exchange.id, request: exchange.request)) {
                exchange.suspend()
                return .YES
            }
            return send(.text(503, "busy; try again"), to: exchange)
        case .asked:
            exchange.suspend()
            return .YES
        case .answered(let response):
            return send(response, to: exchange)
        case .sending:
            return .NO
        }
    }

    private func send(_ response: HTTPResponse, to exchange: HTTPExchange) -> MHD_Result {
        counters.answers(hundred: response.status / 100)?.add()
        if case .octets = response.content { expect(limits.responseTime, on: exchange.descriptor) }
        return exchange.send(response) ? .YES : .NO
    }

    /// Sets how long the next step of a connection may take.
    ///
    /// libmicrohttpd's own limit is for silence; a client that sends an octet now and then does not exceed it.
    private func expect(_ time: Duration?, on descriptor: Int32) {
        guard let deadline = deadlines[descriptor] else { return }
        if let deadline { loop.cancel(deadline) }
        let next = time.map { time in loop.schedule(after: time) { [unowned self] in giveUp(descriptor) } }
        deadlines.updateValue(next, forKey: descriptor)
    }

    /// Makes the library see the connection's end, which is then closed by it.
    private func giveUp(_ descriptor: Int32) {
        deadlines.updateValue(nil, forKey: descriptor)
        counters.slowClients.add()
        shutdown(descriptor, Int32(SHUT_RDWR))
        step()
    }
}
