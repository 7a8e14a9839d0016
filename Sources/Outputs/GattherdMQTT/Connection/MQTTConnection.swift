public import GattherdSync

/// A client's connection to a broker, with or without TLS, which never blocks.
///
/// The owner watches ``descriptor`` for ``interest`` and calls ``receive(at:)``, ``flush(at:)`` and, at ``deadline``,
/// ``tick(at:)``. Everything that the kernel has is read, a bounded part of it at a time. One thread uses it.
public final class MQTTConnection {
    /// The number of bytes in one read.
    private static let chunk = 16_384
    /// The number of chunks to read before the loop handles other sources.
    private static let chunksPerTurn = 64
    /// The number of events after which no further chunk is read in a turn; small messages have many in each chunk.
    private static let eventsPerTurn = 4096

    public let tls: TLSContext?
    private let socket: StreamSocket
    private let secured: TLSConnection?
    private var session: MQTTSession
    private var keepalive: Keepalive
    private let options: MQTTOptions
    private var inbound = [UInt8](repeating: 0, count: chunk)
    private var plain: [UInt8] = []
    private var events: [MQTTEvent] = []
    /// True if nothing can be sent any more; unread bytes may remain.
    private var hasEnded = false

    /// Starts a session on a connected socket.
    ///
    /// - Parameters:
    ///   - socket: The socket, which the connection owns from now on.
    ///   - tls: The TLS context that secures the connection.
    ///   - options: The contents of CONNECT.
    ///   - now: The time since any fixed instant.
    /// - Throws: ``MQTTConnectionError`` if CONNECT cannot be written or TLS cannot start.
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
        keepalive = Keepalive(interval: options.keepalive, timeout: options.answerTimeout, at: now)
        if tls != nil { plain = [UInt8](repeating: 0, count: Self.chunk) }
    }

    public var descriptor: Int32 { socket.descriptor }
    public var isConnected: Bool { session.isConnected }
    /// True if everything is sent.
    public var isClear: Bool { session.outbound.isEmpty && secured?.wantsToSend != true }

    /// The number of bytes that the kernel has not accepted yet.
    public var unsentCount: Int { session.outbound.count }

    /// The readiness that the socket is to be watched for.
    public var interest: DescriptorEvents {
        var interest: DescriptorEvents = isCongested ? [] : .readable
        if canSend { interest.insert(.writable) }
        return interest
    }

    /// True while the broker leaves acknowledgements or TLS records unread.
    private var isCongested: Bool { session.isCongested || secured?.isCongested == true }

    /// True if something can be sent; during a handshake only TLS decides that.
    private var canSend: Bool {
        guard !hasEnded else { return false }
        guard let secured else { return !session.outbound.isEmpty }
        return secured.wantsToSend || secured.isEstablished && !session.outbound.isEmpty
    }

    /// Returns the events since the last call.
    public func drainEvents() -> [MQTTEvent] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    // MARK: - In

    /// Reads the broker's packets; see ``drainEvents()``, also after an error.
    ///
    /// - Throws: ``MQTTConnectionError`` if the connection has ended or has to end.
    public func receive(at now: Duration) throws(MQTTConnectionError) {
        do throws(MQTTConnectionError) {
            for _ in 0..<Self.chunksPerTurn {
                guard try receiveChunk(at: now) == Self.chunk, events.count < Self.eventsPerTurn else { return }
            }
        } catch {
            // The last packet may give the reason.
            endStream(at: now)
            throw error
        }
    }

    private func receiveChunk(at now: Duration) throws(MQTTConnectionError) -> Int {
        guard !isCongested, let count = try socket.receive(into: &inbound) else { return 0 }
        keepalive.received(at: now)
        let pongs = session.pongs
        if let secured {
            try secured.receive(inbound[..<count], by: &plain) { octets, count throws(MQTTConnectionError) in
                try process(octets[..<count])
            }
        } else {
            try process(inbound[..<count])
        }
        if session.pongs > pongs { keepalive.answered() }
        return count
    }

    private func process(_ octets: ArraySlice<UInt8>) throws(MQTTConnectionError) {
        let wasConnected = session.isConnected
        do throws(MQTTViolation) {
            try session.receive(octets, &events)
        } catch {
            throw .violation(error)
        }
        if !wasConnected, session.isConnected { shortenKeepalive() }
    }

    /// Shortens the keepalive to the broker's limit; never lengthens it.
    private func shortenKeepalive() {
        guard case .connected(_, _, let limits) = events.last(where: { $0.isConnected }) else { return }
        guard let seconds = limits.keepalive, seconds > 0 else { return }
        keepalive.interval = min(options.keepalive, .seconds(Int64(seconds)))
    }

    /// Acknowledges received segments to the broker's kernel at once, and reads the bytes released by that.
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

    /// Returns the number of messages of QoS 0 that the kernel has accepted since the last call.
    public func drainSentCount() -> Int { session.drainSentCount() }

    /// Sends as much as the kernel accepts; the next ``receive(at:)`` reports an ended connection.
    ///
    /// - Throws: ``MQTTConnectionError`` if TLS fails.
    public func flush(at now: Duration) throws(MQTTConnectionError) {
        while canSend {
            let before = secured?.sentCount ?? 0
            guard let count = try send() else { return endSending() }
            session.didSend(count)
            if count > 0 || secured?.sentCount ?? 0 > before { keepalive.sent(at: now) }
            // With TLS, further records may follow the sent ones.
            guard secured != nil, count > 0 else { return }
        }
    }

    private func send() throws(MQTTConnectionError) -> Int? {
        guard let secured else { return socket.send(session.outbound.unsent) }
        return try secured.send(session.outbound.unsent, to: socket)
    }

    /// Ends sending; packets that the broker sent before can still be read.
    public func endSending() {
        hasEnded = true
        session.outbound.removeAll()
        socket.end(both: true)
    }

    // MARK: - Time

    /// The time of the next ``tick(at:)``.
    public var deadline: Duration? { isConnected ? keepalive.deadline(isClear: isClear) : nil }

    /// Pings the broker after a silence.
    ///
    /// - Throws: ``MQTTConnectionError`` if the broker does not answer or reads nothing.
    public func tick(at now: Duration) throws(MQTTConnectionError) {
        guard isConnected else { return }
        switch keepalive.verdict(isClear: isClear, at: now) {
        case .alive: break
        case .ping:
            ping(at: now)
            try flush(at: now)
        case .silent: throw .pingUnanswered
        case .stalled: throw .stalled(keepalive.timeout)
        }
    }

    /// Appends PINGREQ.
    ///
    /// A broker processes packets in order, so PINGRESP confirms the packets before PINGREQ; see ``confirmations``.
    public func ping(at now: Duration) {
        guard isConnected else { return }
        session.ping()
        keepalive.pinged(at: now)
    }

    /// The number of PINGREQ packets written, and of those that the broker has answered.
    public var confirmations: (asked: Int, answered: Int) { (session.pings, session.pongs) }

    /// Sends DISCONNECT if all bytes before it can be sent at once.
    ///
    /// - Parameters:
    ///   - now: The current time.
    ///   - reason: The reason; MQTT 3.1.1 has none. The broker publishes the will only with
    ///     ``MQTTReason/disconnectWithWill``.
    public func disconnect(at now: Duration, _ reason: MQTTReason = .success) {
        session.disconnect(reason)
        endStream(at: now)
    }

    /// Sends the remaining bytes, such as DISCONNECT after a violation, and nothing further.
    ///
    /// Unread input is discarded. Otherwise the kernel would reset the connection and drop DISCONNECT.
    private func endStream(at now: Duration) {
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
