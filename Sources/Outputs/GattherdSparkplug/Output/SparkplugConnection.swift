import GattherdMQTT
import GattherdMachines
import GattherdSync

/// One connection of the edge node, from CONNECT to its end.
///
/// On the loop's thread only.
final class SparkplugConnection {
    enum Event {
        /// CONNACK, with the maximum size of packets in bytes, and the answers to all subscriptions have arrived.
        case connected(maximumPacket: Int)
        /// The broker refuses a subscription.
        case refused(filter: String)
        case message(BrokerMessage)
        /// The broker has answered the ping.
        case confirmed
        case failed(BrokerFault)
    }

    let number: Int
    private let options: SparkplugOptions
    private let time: LoopTime
    private let connection: LoopConnection
    private let report: (Event) -> Void
    private var isConnected = false
    /// The maximum size of a packet that the broker accepts, in bytes.
    private var maximumPacket = Int.max
    /// The subscriptions that the broker has not answered.
    private var subscriptions: [UInt16: String] = [:]
    /// True once the broker has answered all subscriptions.
    private var areAnswered = false
    /// The pauses before refused subscriptions are tried again, by their filters.
    private var pauses: [String: Duration] = [:]
    /// The longest of these pauses.
    private static let longestPause = Duration.seconds(600)
    /// The number of the ping that confirms values.
    private var awaitedPing: Int?
    /// The size of the last births of the node.
    private var birthSize = 0

    init(
        _ number: Int,
        _ mqtt: MQTTConnection,
        _ options: SparkplugOptions,
        _ time: LoopTime,
        report: @escaping (Event) -> Void
    ) {
        self.number = number
        self.options = options
        self.time = time
        self.report = report
        connection = LoopConnection(mqtt, time)
    }

    /// Sends CONNECT.
    func start() {
        connection.start(
            ready: { [weak self] in self?.socketIsReady(canRead: $0) },
            failed: { [weak self] in self?.connectionFailed($0) }
        )
        flush()
        watch()
    }

    /// Watches the socket for the readiness that the connection needs now.
    func watch() {
        connection.watch()
    }

    /// Sends the waiting bytes.
    func flush() {
        connection.flush()
    }

    /// The number of bytes that the broker has not read, apart from those in the kernel.
    var unsentCount: Int { connection.mqtt.unsentCount }

    /// True if the broker reads so slowly that states of devices accumulate.
    ///
    /// Unread values are bounded, and so are births of the node: a second one waits until the broker has the first.
    var isOverfull: Bool { unsentCount > options.options.unsentLimit + 2 * birthSize }

    /// Records the size of the births of the node, which any broker has to read.
    func recordBirths(_ size: Int) {
        birthSize = size
    }

    /// Appends a message; ``flush()`` sends it.
    ///
    /// - Throws: ``MQTTRefusal`` if the message cannot be written, for example because it is too long for the broker.
    func publish(_ message: SparkplugMessage) throws(MQTTRefusal) {
        let packet = PublishPacket(
            topic: message.topic,
            payload: message.payload.encoded[...],
            isRetained: false,
            properties: MessageProperties(isJSON: false)
        )
        _ = try connection.mqtt.publish(packet, qos: message.qos)
    }

    /// Appends a ping, whose answer is reported.
    func ping() {
        connection.mqtt.ping(at: time.now)
        awaitedPing = connection.mqtt.confirmations.asked
    }

    /// Ends the connection: with `death` and DISCONNECT, or without both, so that the broker publishes the will.
    func close(_ death: SparkplugMessage?) {
        guard !connection.isClosed else { return }
        var reason: MQTTReason?
        if let death, isConnected, (try? publish(death)) != nil { reason = .disconnectWithWill }
        connection.close(reason)
    }
}

/// Receives packets.
extension SparkplugConnection {
    private func socketIsReady(canRead: Bool) {
        if canRead { receive() }
        flush()
        watch()
    }

    private func receive() {
        var failure: MQTTConnectionError?
        do throws(MQTTConnectionError) {
            try connection.mqtt.receive(at: time.now)
        } catch {
            failure = error
        }
        for event in connection.mqtt.drainEvents() where !connection.isClosed { handle(event) }
        checkPing()
        guard let failure, !connection.isClosed else { return }
        report(.failed(fault(failure)))
    }

    private func checkPing() {
        guard let awaitedPing, connection.mqtt.confirmations.answered >= awaitedPing, !connection.isClosed else {
            return
        }
        self.awaitedPing = nil
        report(.confirmed)
    }

    private func handle(_ event: MQTTEvent) {
        switch event {
        case .connected(.success, _, let limits): connected(limits)
        case .connected(let reason, let text, _), .disconnected(let reason, let text):
            report(.failed(BrokerFault(reason, text, isConnected: isConnected)))
        case .subscribed(let identifier, let reason): subscribed(identifier, reason)
        case .message(let message): report(.message(message))
        case .acknowledged, .unsubscribed: break
        }
    }

    private func connected(_ limits: BrokerLimits) {
        isConnected = true
        maximumPacket = limits.maximumPacket
        connection.keepAlive()
        do throws(MQTTRefusal) {
            for filter in options.topics.subscriptions { try subscribe(to: filter) }
        } catch {
            // If the broker has ended the session already, its reason is reported next.
            guard error != .notConnected else { return }
            report(.failed(BrokerFault(.session, "cannot subscribe: \(error)")))
        }
    }

    private func subscribe(to filter: String) throws(MQTTRefusal) {
        // The primary host's state has to be the retained one, too; commands are refused if retained.
        let keepsRetainFlag = filter != options.topics.hostState
        let subscription = SubscriptionOptions(qos: 1, keepsRetainFlag: keepsRetainFlag)
        subscriptions[try connection.mqtt.subscribe(to: filter, subscription)] = filter
    }

    /// Tries a refused subscription again; without it the gateway would miss commands, or wait for its host forever.
    private func subscribeLater(to filter: String) {
        let pause = pauses[filter] ?? options.options.refusedBackoff.minimum
        pauses[filter] = min(pause * 2, Self.longestPause)
        time.loop.schedule(after: pause) { [weak self] in
            guard let self, !connection.isClosed else { return }
            // If the packet cannot be written, the session is ending.
            try? subscribe(to: filter)
            flush()
            watch()
        }
    }

    private func subscribed(_ identifier: UInt16, _ reason: MQTTReason) {
        guard let filter = subscriptions.removeValue(forKey: identifier) else { return }
        if reason.isFailure {
            report(.refused(filter: filter))
            subscribeLater(to: filter)
        } else {
            pauses[filter] = nil
        }
        guard subscriptions.isEmpty, !areAnswered else { return }
        areAnswered = true
        report(.connected(maximumPacket: maximumPacket))
    }

    private func connectionFailed(_ failure: LoopConnection.Failure) {
        switch failure {
        case .lost(let error): report(.failed(fault(error)))
        case .unwatched(let error): report(.failed(BrokerFault(.lost, error.description)))
        }
    }

    private func fault(_ error: MQTTConnectionError) -> BrokerFault {
        BrokerFault(error, connection.mqtt.tls?.explanation, isConnected: isConnected, options)
    }
}
