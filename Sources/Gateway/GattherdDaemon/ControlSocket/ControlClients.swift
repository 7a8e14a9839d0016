import CLinux
import GattherdLog
import GattherdSync
import Glibc

/// The identity of a client.
///
/// A descriptor alone may belong to another client after a disconnect.
struct ControlClientID: Hashable, Sendable {
    let descriptor: Int32
    let number: UInt64
}

/// One request line of a client.
struct ControlSocketRequest: Sendable {
    let client: ControlClientID
    let line: [UInt8]
    /// True if the client may also change something.
    let mayChange: Bool
    /// True as soon as the client has closed its side.
    let hangUp = LatestValue(false)
}

/// The connections of a ``ControlSocket``; all calls are on the event loop's thread.
final class ControlClients {
    /// The maximum number of simultaneous clients.
    static let limit = 64
    /// The maximum number of simultaneous clients that may only ask; root and the daemon's user have the other places.
    static let askerLimit = 48
    /// The longest request, in bytes.
    private static let lineLimit = 65_536
    /// The maximum number of bytes that wait for a slow client of a watch.
    private static let backlogLimit = 1 << 20

    private struct Client {
        let id: ControlClientID
        let mayChange: Bool
        var input: [UInt8] = []
        var output: [UInt8] = []
        /// The request in progress, until its last reply is written.
        ///
        /// The next request waits.
        var request: ControlSocketRequest?
        /// True if the output includes the last reply to the request.
        var isAnswered = false
        /// True while the socket is full; the rest of the output waits until the socket is writable.
        var isBlocked = false
        /// True after the client has closed its write side; the client is dropped after the reply.
        var isFinished = false

        var interest: DescriptorEvents {
            DescriptorEvents(isFinished ? [.halfClosed] : [.readable]).union(isBlocked ? [.writable] : [])
        }
    }

    private let listener: Int32
    private let loop: EventLoop
    private let post: AsyncStream<ControlSocketRequest>.Continuation
    private let log: Log
    private let isTrusted: (ControlPeer) -> Bool
    private var clients: [Int32: Client] = [:]
    private var count: UInt64 = 0
    private var isPaused = false

    /// - Parameters:
    ///   - listener: The listening socket.
    ///   - loop: The loop of all calls.
    ///   - post: Receives the requests.
    ///   - isTrusted: True for clients that may change something.
    ///   - log: The log.
    init(
        listener: Int32,
        loop: EventLoop,
        post: AsyncStream<ControlSocketRequest>.Continuation,
        isTrusted: @escaping (ControlPeer) -> Bool,
        log: Log
    ) {
        self.listener = listener
        self.isTrusted = isTrusted
        self.loop = loop
        self.post = post
        self.log = log
    }

    func start() {
        do throws(WatchError) {
            try loop.watch(listener, for: .readable) { [unowned self] _ in accept() }
        } catch {
            log(.error, "the control socket is not served", [.init("error", error.description)])
            resumeLater()
        }
    }

    /// Writes a reply, unless the client has disconnected.
    ///
    /// Drops a client that does not read its replies.
    func send(_ line: [UInt8], to id: ControlClientID, isLast: Bool) {
        guard let client = clients[id.descriptor], client.id == id else { return }
        guard isLast || client.output.count + line.count <= Self.backlogLimit else { return drop(id.descriptor) }
        clients[id.descriptor]?.output += line
        clients[id.descriptor]?.isAnswered = isLast
        if !client.isBlocked { flush(id.descriptor) }
    }

    func close() {
        if isPaused { isPaused = false } else { loop.unwatch(listener) }
        Glibc.close(listener)
        for descriptor in clients.keys { drop(descriptor) }
    }

    private func accept() {
        while true {
            let descriptor = clinux_accept(listener)
            if descriptor < 0 && [EINTR, ECONNABORTED].contains(errno) { continue }
            guard descriptor >= 0 else { return errno == EAGAIN ? () : pause() }
            count += 1
            let id = ControlClientID(descriptor: descriptor, number: count)
            let client = Client(id: id, mayChange: isTrusted(ControlPeer(of: descriptor)))
            let isWatched = hasPlace(for: client) && watch(descriptor)
            if isWatched { clients[descriptor] = client } else { turnAway(client) }
        }
    }

    private func hasPlace(for client: Client) -> Bool {
        clients.count < Self.limit && (client.mayChange || clients.values.count { !$0.mayChange } < Self.askerLimit)
    }

    private func turnAway(_ client: Client) {
        let limit = client.mayChange ? Self.limit : Self.askerLimit
        refuse(client.id.descriptor, "the daemon serves \(limit) clients already; try again")
        Glibc.close(client.id.descriptor)
    }

    /// Writes the reason for a disconnect if the socket has room for it.
    private func refuse(_ descriptor: Int32, _ reason: String) {
        let line = ControlReply.refused(reason).line
        _ = unsafe Glibc.send(descriptor, line, line.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    }

    /// Refuses a client's request and drops the client; a reply in progress is completed.
    private func reject(_ descriptor: Int32, _ reason: String) {
        if clients[descriptor]?.output.isEmpty == true { refuse(descriptor, reason) }
        drop(descriptor)
    }

    /// Stops accepting while no descriptor is free: waiting clients would wake the loop continuously.
    private func pause() {
        loop.unwatch(listener)
        resumeLater()
    }

    /// The pause until another client is accepted: descriptors are freed when other clients leave.
    private static let acceptPause = Duration.seconds(1)

    private func resumeLater() {
        isPaused = true
        loop.schedule(after: Self.acceptPause) { [weak self] in self?.resume() }
    }

    private func resume() {
        guard isPaused else { return }
        isPaused = false
        start()
    }

    private func watch(_ descriptor: Int32) -> Bool {
        do throws(WatchError) {
            try loop.watch(descriptor, for: .readable) { [unowned self] ready in handle(ready, on: descriptor) }
            return true
        } catch {
            return false
        }
    }

    private func handle(_ ready: DescriptorEvents, on descriptor: Int32) {
        if ready.contains(.writable) { flush(descriptor) }
        let hasEnded = !ready.isDisjoint(with: [.hangUp, .error])
        if hasEnded, clients[descriptor]?.isFinished == true { return drop(descriptor) }
        if hasEnded || ready.contains(.readable) { receive(descriptor) }
    }

    private func receive(_ descriptor: Int32) {
        var chunk = [UInt8](repeating: 0, count: 4096)
        while let client = clients[descriptor], !client.isFinished {
            let count = unsafe recv(descriptor, &chunk, chunk.count, 0)
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EAGAIN { break }
            guard count >= 0 else { return drop(descriptor) }
            guard client.input.count + count <= Self.lineLimit else {
                return reject(descriptor, "a request has more than \(Self.lineLimit) bytes")
            }
            if count == 0 { finish(descriptor) } else { clients[descriptor]?.input += chunk[..<count] }
        }
        dispatchNext(descriptor)
    }

    /// Reads no more of a client that has closed its write side; it may still read replies.
    private func finish(_ descriptor: Int32) {
        clients[descriptor]?.isFinished = true
        watchAgain(descriptor)
        clients[descriptor]?.request?.hangUp.set(true)
    }

    /// Watches for the events that a client now awaits, and drops it if that fails.
    private func watchAgain(_ descriptor: Int32) {
        guard let client = clients[descriptor] else { return }
        do throws(WatchError) { try loop.rewatch(descriptor, for: client.interest) } catch { drop(descriptor) }
    }

    /// Passes on the next complete line unless a request is in progress.
    private func dispatchNext(_ descriptor: Int32) {
        guard let client = clients[descriptor], client.request == nil else { return }
        guard let end = client.input.firstIndex(of: UInt8(ascii: "\n")) else {
            if client.isFinished { drop(descriptor) }
            return
        }
        clients[descriptor]?.input = Array(client.input[(end + 1)...])
        let line = Array(client.input[..<end])
        let request = ControlSocketRequest(client: client.id, line: line, mayChange: client.mayChange)
        clients[descriptor]?.request = request
        clients[descriptor]?.isAnswered = false
        if client.isFinished { request.hangUp.set(true) }
        if case .dropped = post.yield(request) { reject(descriptor, "too many requests at once; try again") }
    }

    private func flush(_ descriptor: Int32) {
        while let client = clients[descriptor], !client.output.isEmpty {
            let count = unsafe Glibc.send(descriptor, client.output, client.output.count, Int32(MSG_NOSIGNAL))
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EAGAIN {
                clients[descriptor]?.isBlocked = true
                return watchAgain(descriptor)
            }
            guard count > 0 else { return drop(descriptor) }
            clients[descriptor]?.output.removeFirst(count)
        }
        written(descriptor)
    }

    private func written(_ descriptor: Int32) {
        guard let client = clients[descriptor], client.request != nil else { return }
        clients[descriptor]?.isBlocked = false
        if client.isBlocked { watchAgain(descriptor) }
        guard client.isAnswered else { return }
        clients[descriptor]?.request = nil
        dispatchNext(descriptor)
    }

    private func drop(_ descriptor: Int32) {
        guard let client = clients.removeValue(forKey: descriptor) else { return }
        client.request?.hangUp.set(true)
        loop.unwatch(descriptor)
        Glibc.close(descriptor)
    }
}
