import CMicroHTTPD
import GattherdLog
import GattherdSync
import Glibc

/// The connections of an ``HTTPServer``.
///
/// All calls, including callbacks of libmicrohttpd, are on the loop's thread.
final class HTTPConnections {
    /// Returns the maximum number of bytes of a request's body.
    var bodyLimit: @Sendable (HTTPRequest) -> Int

    private let loop: EventLoop
    private let limits: HTTPLimits
    private let counters: HTTPCounters
    private let requests: AsyncStream<PendingHTTPRequest>.Continuation
    private var daemon: MicroHTTPDaemon?
    private var wakeup: LoopTimer?
    /// Timers that close slow connections, by descriptor; `nil` while no step of the client is awaited.
    private var deadlines: [Int32: LoopTimer?] = [:]
    private var exchanges: [UInt64: HTTPExchange] = [:]
    /// The sockets of pending requests, watched for the end of the client's side.
    private var watched: Set<Int32> = []
    private var lastExchange: UInt64 = 0
    /// True after a connection ended: libmicrohttpd (0.9.75) accepts a waiting one only when it runs again.
    private var needsRerun = false

    init(
        loop: EventLoop,
        limits: HTTPLimits,
        counters: HTTPCounters,
        requests: AsyncStream<PendingHTTPRequest>.Continuation
    ) {
        self.loop = loop
        self.limits = limits
        self.counters = counters
        self.requests = requests
        bodyLimit = { _ in limits.body }
    }

    /// Serves connections to `socket`.
    ///
    /// - Throws: ``ListenError`` without memory or descriptors.
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

    /// Sends a response, unless the client disconnected.
    func respond(to exchange: UInt64, with response: HTTPResponse) {
        guard let exchange = exchanges[exchange] else {
            if case .events(let channel) = response.content { channel.abandon() }
            return
        }
        endWatch(exchange.descriptor)
        exchange.phase = .ready(response)
        exchange.resume()
        step()
    }

    /// Continues an event stream that has new messages.
    func wake(_ exchange: UInt64) {
        guard let exchange = exchanges[exchange], case .sending = exchange.phase, exchange.isSuspended else { return }
        exchange.resume()
        step()
    }

    /// Closes all connections and the listening socket.
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
            needsRerun = false
            daemon.run()
        } while needsRerun
        if let wakeup { loop.cancel(wakeup) }
        wakeup = daemon.timeout.map { timeout in loop.schedule(after: timeout) { [unowned self] in step() } }
    }
}

// MARK: - Callbacks of libmicrohttpd

extension HTTPConnections {
    /// Returns the connections that own the daemon of libmicrohttpd, without retaining them.
    static func at(_ pointer: UnsafeMutableRawPointer?) -> HTTPConnections? {
        unsafe pointer.map { unsafe Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }

    func connection(_ descriptor: Int32, hasBegun: Bool) {
        guard hasBegun else {
            needsRerun = true
            endWatch(descriptor)
            expect(nil, on: descriptor)
            deadlines.removeValue(forKey: descriptor)
            return
        }
        counters.connections.add()
        limitSilence(of: descriptor)
        deadlines.updateValue(nil, forKey: descriptor)
        expect(limits.requestTime, on: descriptor)
    }

    /// Ends the connection of a client that lost its network; TCP alone tries for 15 minutes.
    private func limitSilence(of descriptor: Int32) {
        var milliseconds = UInt32(clamping: Int64(limits.silenceTime / .milliseconds(1)))
        let size = socklen_t(MemoryLayout<UInt32>.size)
        _ = unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, size)
    }

    /// Handles a call of the library: after the headers, for each part of the body, at its end, after each suspension.
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
        guard unsafe exchange.request.body.count + count.pointee <= exchange.bodyLimit else { return .NO }
        unsafe exchange.request.body += UnsafeRawBufferPointer(start: upload, count: count.pointee)
        unsafe count.pointee = 0
        return .YES
    }

    func complete(_ context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?) {
        guard let context = unsafe context, let known = unsafe context.pointee else { return }
        unsafe context.pointee = nil
        let exchange = unsafe Unmanaged<HTTPExchange>.fromOpaque(known).takeRetainedValue()
        exchanges[exchange.id] = nil
        endWatch(exchange.descriptor)
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

    /// Refuses an invalid request before its body is read.
    private func refuse(_ exchange: HTTPExchange, isKnownMethod: Bool) -> MHD_Result {
        guard isKnownMethod else {
            return send(.text(405, "use GET, HEAD or POST").with("Allow", "GET, HEAD, POST"), to: exchange)
        }
        let headers = exchange.request.headers
        guard headers["transfer-encoding"] == nil else {
            return send(.text(411, "send a body with a Content-Length"), to: exchange)
        }
        guard let length = headers["content-length"] else { return .YES }
        exchange.bodyLimit = bodyLimit(exchange.request)
        guard let bytes = Int(length), bytes <= exchange.bodyLimit else {
            return send(.text(413, "the body is larger than \(exchange.bodyLimit) bytes"), to: exchange)
        }
        return .YES
    }

    private func proceed(_ exchange: HTTPExchange) -> MHD_Result {
        switch exchange.phase {
        case .receiving:
            exchange.phase = .pending
            expect(nil, on: exchange.descriptor)
            if case .enqueued = requests.yield(exchange.pendingRequest) {
                exchange.suspend()
                watch(exchange)
                return .YES
            }
            return send(.text(503, "busy; try again"), to: exchange)
        case .pending:
            exchange.suspend()
            return .YES
        case .ready(let response):
            return send(response, to: exchange)
        case .sending:
            return .NO
        }
    }

    /// Reports the end of the client's side while a request is pending: libmicrohttpd does not read then.
    private func watch(_ exchange: HTTPExchange) {
        let (descriptor, hangUp) = (exchange.descriptor, exchange.hangUp)
        guard watched.insert(descriptor).inserted else { return }
        do throws(WatchError) {
            try loop.watch(descriptor, for: []) { [unowned self] _ in
                hangUp.set(true)
                endWatch(descriptor)
            }
        } catch {
            watched.remove(descriptor)
        }
    }

    private func endWatch(_ descriptor: Int32) {
        if watched.remove(descriptor) != nil { loop.unwatch(descriptor) }
    }

    private func send(_ response: HTTPResponse, to exchange: HTTPExchange) -> MHD_Result {
        counters.responses(hundred: response.status / 100)?.add()
        if case .bytes = response.content { expect(limits.responseTime, on: exchange.descriptor) }
        return exchange.send(response) ? .YES : .NO
    }

    /// Sets how long the next step of a connection may take.
    ///
    /// libmicrohttpd limits only inactivity, so a client that sends single bytes slowly does not exceed its limit.
    private func expect(_ time: Duration?, on descriptor: Int32) {
        guard let deadline = deadlines[descriptor] else { return }
        if let deadline { loop.cancel(deadline) }
        let next = time.map { time in loop.schedule(after: time) { [unowned self] in closeSlow(descriptor) } }
        deadlines.updateValue(next, forKey: descriptor)
    }

    /// Shuts a slow connection down; the library then closes it.
    private func closeSlow(_ descriptor: Int32) {
        deadlines.updateValue(nil, forKey: descriptor)
        counters.slowClients.add()
        shutdown(descriptor, Int32(SHUT_RDWR))
        step()
    }
}
