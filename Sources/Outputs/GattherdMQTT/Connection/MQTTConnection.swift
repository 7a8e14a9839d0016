public import GattherdSync

/// A client's connection to a broker, plain or secured, which never blocks.
///
/// The owner watches ``descriptor`` for ``interest`` and calls ``receive(at:)``, ``flush(at:)`` and, at ``deadline``,
/// ``tick(at:)``. Everything that the kernel has is read, a bounded part of it at a time. One thread uses it.
public final class MQTTConnection {
    /// The octets that are read at once.
    private static let chunk = 16_384
    /// The chunks that are read before others get their turn.
    private static let chunksPerTurn = 64

    public let tls: TLSContext?
    private let socket: StreamSocket
    private let secured: TLSConnection?
    private var session: MQTTSession
    private var keepalive: Keepalive
    private let options: MQTTOptions
    private var inbound = [UInt8](repeating: 0, count: chunk)
    private var plain: [UInt8] = []
    private var events: [MQTTEvent] = []
    /// Nothing can be sent any more; there may be something left to read.
    private var hasEnded = false

    /// Begins a session on a socket that has just been connected.
    ///
    /// - Parameters:
    ///   - socket: Taken over.
    ///   - tls: Secures the connection.
    ///   - options: The contents of CONNECT.
    ///   - now: The time, from any fixed instant.
    /// - Throws: ``MQTTConnectionError`` when CONNECT cannot be written, or TLS cannot begin.
    public init(
        _ socket: StreamSocket,
        _ tls: TLSContext?,
        _ options: MQTTOptions,
        at now: Duration
    ) throws(MQTTConnectionError) {
        self.socket = socket
        self.tls = tls
        do throws(MQTTRefusal) { session = try MQTTSession(options) } catch { throw .refusal(error) }
        secured = try tls.map { tls throws(MQTTConnectionError) in try TLSConnection(tls) }
        self.options = options
        keepalive = Keepalive(interval: options.keepalive, patience: options.answerPatience, at: now)
        if tls != nil { plain = [UInt8](repeating: 0, count: Self.chunk) }
    }

    public var descriptor: Int32 { socket.descriptor }
    public var isConnected: Bool { session.isConnected }
    /// True if everything is sent.
    public var isClear: Bool { session.outbound.isEmpty && secured?.wantsToSend != true }

    /// The readiness for which the socket is to be watched.
    public var interest: DescriptorEvents {
        var interest: DescriptorEvents = isCongested ? [] : .readable
        if canSend { interest.insert(.writable) }
        return interest
    }

    /// True while the broker does not read what we owe it, in acknowledgements or in TLS records.
    private var isCongested: Bool { session.isCongested || secured?.isCongested == true }

    /// During a handshake, only TLS knows whether there is something to send.
    private var canSend: Bool {
        guard !hasEnded else { return false }
        guard let secured else { return !session.outbound.isEmpty }
        return secured.wantsToSend || secured.isEstablished && !session.outbound.isEmpty
    }

    /// The events since the last call.
    public func takeEvents() -> [MQTTEvent] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    // MARK: - In

    /// Reads what the broker sent; see ``takeEvents()``, also after an error.
    ///
    /// - Throws: ``MQTTConnectionError`` when the connection has ended, or has to.
    public func receive(at now: Duration) throws(MQTTConnectionError) {
        do throws(MQTTConnectionError) {
            for _ in 0..<Self.chunksPerTurn where try receiveChunk(at: now) < Self.chunk { return }
        } catch {
            // It may say why.
            farewell(at: now)
            throw error
        }
    }

    private func receiveChunk(at now: Duration) throws(MQTTConnectionError) -> Int {
        guard !isCongested, let count = try socket.receive(into: &inbound) else { return 0 }
        keepalive.received(at: now)
        let pongs = session.pongs
        if let secured {
            try secured.receive(inbound[..<count], by: &plain) { octets, count throws(MQTTConnectionError) in
                try take(octets[..<count])
            }
        } else {
            try take(inbound[..<count])
        }
        if session.pongs > pongs { keepalive.answered() }
        return count
    }

    private func take(_ octets: ArraySlice<UInt8>) throws(MQTTConnectionError) {
        let wasConnected = session.isConnected
        do throws(MQTTViolation) {
            try session.receive(octets, &events)
        } catch {
            throw .violation(error)
        }
        if !wasConnected, session.isConnected { adoptKeepalive() }
    }

    /// A broker may want to hear from us more often; never more seldom than we want to.
    private func adoptKeepalive() {
        guard case .connected(_, _, let limits) = events.last(where: { $0.isConnected }) else { return }
        guard let seconds = limits.keepalive, seconds > 0 else { return }
        keepalive.interval = min(options.keepalive, .seconds(Int64(seconds)))
    }

    /// Tells the broker's kernel at once what has come, and reads what that sets free.
    public func receiveFurther(at now: Duration) throws(MQTTConnectionError) {
        socket.acknowledgeSegments()
        try receive(at: now)
    }

    // MARK: - Out

    /// Appends a message; see ``MQTTSession/publish(_:qos:)``.
    public func publish(_ message: PublishPacket, qos: Int) throws(MQTTRefusal) -> UInt16 {
        try session.publish(message, qos: qos)
    }

    public func subscribe(to filter: String, _ options: SubscriptionOptions) throws(MQTTRefusal) -> UInt16 {
        try session.subscribe(to: filter, options)
    }

    public func unsubscribe(from filter: String) throws(MQTTRefusal) -> UInt16 {
        try session.unsubscribe(from: filter)
    }

    /// Returns the number of messages of QoS 0 that the kernel has taken since the last call.
    public func takeSentCount() -> Int { session.takeSentCount() }

    /// Sends what the kernel takes; a connection that has ended is told by the next ``receive(at:)``.
    ///
    /// - Throws: ``MQTTConnectionError`` when TLS fails.
    public func flush(at now: Duration) throws(MQTTConnectionError) {
        while canSend {
            let before = secured?.sentCount ?? 0
            guard let count = try send() else { return endSending() }
            session.outbound.remove(count)
            if count > 0 || secured?.sentCount ?? 0 > before { keepalive.sent(at: now) }
            // With TLS, further records follow those that are sent.
            guard secured != nil, count > 0 else { return }
        }
    }

    private func send() throws(MQTTConnectionError) -> Int? {
        guard let secured else { return socket.send(session.outbound.unsent) }
        return try secured.send(session.outbound.unsent, to: socket)
    }

    /// Nothing is sent any more; what the broker said before can still be read.
    public func endSending() {
        hasEnded = true
        session.outbound.removeAll()
        socket.end(both: true)
    }

    // MARK: - Time

    /// When ``tick(at:)`` has something to do.
    public var deadline: Duration? { isConnected ? keepalive.deadline(isClear: isClear) : nil }

    /// Pings the broker after a silence.
    ///
    /// - Throws: ``MQTTConnectionError`` when it does not answer, or takes nothing.
    public func tick(at now: Duration) throws(MQTTConnectionError) {
        guard isConnected else { return }
        switch keepalive.verdict(isClear: isClear, at: now) {
        case .alive: break
        case .ping:
            session.ping()
            keepalive.pinged(at: now)
            try flush(at: now)
        case .silent: throw .pingUnanswered
        case .stalled: throw .stalled(keepalive.patience)
        }
    }

    /// Sends DISCONNECT if all before it can be sent at once, so that the broker does not publish the will.
    public func disconnect(at now: Duration) {
        session.disconnect()
        farewell(at: now)
    }

    /// Sends what is left to be sent, such as the DISCONNECT after a violation, and nothing further.
    ///
    /// What has come and was not read is discarded: the kernel would else reset the connection, DISCONNECT with it.
    private func farewell(at now: Duration) {
        guard !hasEnded else { return }
        try? flush(at: now)
        secured?.end()
        if let secured, !hasEnded { _ = try? secured.send([], to: socket) }
        hasEnded = true
        socket.end(both: false)
        for _ in 0..<Self.chunksPerTurn {
            guard let count = try? socket.receive(into: &inbound), count > 0 else { return }
        }
    }
}

extension MQTTEvent {
    fileprivate var isConnected: Bool {
        if case .connected = self { true } else { false }
    }
}
