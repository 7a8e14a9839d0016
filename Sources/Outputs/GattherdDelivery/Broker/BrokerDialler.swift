import GattherdMQTT
import GattherdMachines
import GattherdSync

/// Connects to the broker on threads, one address after the other.
final class BrokerDialler {
    /// The maximum number of dialling threads; a name lookup or reading the TLS files may hang.
    private static let maximumDials = 8
    /// The longest wait of a probe, which a host that refuses connections answers at once.
    private static let probeTimeout = Duration.seconds(1)

    private let context: DeliveryContext
    /// Dialling attempts whose thread has not ended.
    private var dials = 0
    /// The index of the broker's address to try first.
    private var nextAddress = 0
    /// The address of the current connection.
    private var address: String?
    /// The address of the last session.
    private var lastAddress: String?
    /// The random name of this run, which distinguishes its last wills from those of others.
    private let run = String(UInt64.random(in: .min ... .max), radix: 16)
    /// True unless the broker refuses a retained will.
    var isWillRetained = true

    init(_ context: DeliveryContext) {
        self.context = context
    }

    /// Resolves the host and connects on a thread of its own, as both block; `nil` if the task was cancelled.
    ///
    /// - Throws: ``BrokerFault`` if no address can be connected to, or if too many earlier attempts are still blocked.
    func dial() async throws(BrokerFault) -> DialledConnection? {
        guard dials < Self.maximumDials else {
            throw .unreachable(context.settings, "earlier attempts are still running")
        }
        dials += 1
        defer { dials -= 1 }
        let (settings, first, last) = (context.settings, nextAddress, lastAddress)
        let result = await NamedThread.result(name: "mqtt-dial") {
            Result { () throws(BrokerFault) in try settings.dial(first: first, last: last) }
        }
        return try result?.get()
    }

    /// Tries a connection to the address of the last session, without a session.
    ///
    /// - Returns: True if its host refuses, which shows that the broker was down.
    func isBrokerDown() async -> Bool {
        guard let lastAddress, dials < Self.maximumDials else { return false }
        dials += 1
        defer { dials -= 1 }
        let endpoint = context.settings.endpoint
        return await NamedThread.result(name: "mqtt-dial") {
            endpoint.isRefused(at: lastAddress, within: Self.probeTimeout)
        } ?? false
    }

    /// True if the host of the last session refused a connection before another host accepted one.
    func wasBrokerDown(before dialled: DialledConnection) -> Bool {
        lastAddress.map { dialled.refusing.contains($0) } ?? false
    }

    /// Records that the broker has accepted the session.
    func didConnect() {
        lastAddress = address
    }

    /// Starts a connection on the socket, with `offline` as the will.
    ///
    /// - Parameters:
    ///   - dialled: The socket.
    ///   - session: The number of the session, which the will carries.
    /// - Returns: The connection.
    /// - Throws: ``BrokerFault`` if CONNECT cannot be written or TLS cannot start.
    func connection(_ dialled: DialledConnection, session: Int) throws(BrokerFault) -> MQTTConnection {
        let will = BrokerWill(
            topic: context.topics.state,
            payload: "offline".utf8,
            isRetained: isWillRetained,
            correlation: Array("\(run)-\(session)".utf8)
        )
        address = dialled.address
        return try dialled.connection(context.settings, will: will, at: context.now)
    }

    /// Returns the number of the session of this run whose last will a message is; `nil` for another message.
    func session(ofLastWill message: BrokerMessage) -> Int? {
        guard message.topic == context.topics.state, let correlation = message.correlation else { return nil }
        let parts = String(decoding: correlation, as: UTF8.self).split(separator: "-")
        return parts.count == 2 && parts[0] == run ? Int(parts[1]) : nil
    }

    /// Starts the next attempt at the broker's next address.
    func useNextAddress() {
        nextAddress += 1
    }
}

extension DeliverySettings {
    var endpoint: BrokerEndpoint {
        BrokerEndpoint(host: host, port: port, tls: tls, connectTimeout: options.connectTimeout)
    }

    /// Resolves the host and connects to one of its addresses; see ``BrokerEndpoint/dial(first:)``.
    ///
    /// - Parameters:
    ///   - first: The index of the first address to try.
    ///   - last: The address of the last session, whose refusal shows that the broker was down.
    /// - Returns: The connection.
    /// - Throws: ``BrokerFault`` if no address can be connected to.
    func dial(first: Int, last: String? = nil) throws(BrokerFault) -> DialledConnection {
        do throws(DialError) {
            return try endpoint.dial(first: first)
        } catch {
            if case .tls(let error) = error { throw BrokerFault(.security, "\(error)") }
            let wasBrokerDown = last.map { error.isRefused(at: $0) } ?? false
            throw .unreachable(self, "\(error)", wasBrokerDown: wasBrokerDown)
        }
    }
}

extension DialledConnection {
    /// Starts an MQTT session on the socket.
    ///
    /// - Throws: ``BrokerFault`` if CONNECT cannot be written or TLS cannot start.
    func connection(
        _ settings: DeliverySettings,
        will: BrokerWill?,
        at now: Duration
    ) throws(BrokerFault) -> MQTTConnection {
        var options = MQTTOptions(settings.version.ofPackets, clientID: settings.clientID)
        options.username = settings.username
        options.password = settings.password?.text
        options.keepalive = settings.keepalive
        options.answerTimeout = settings.options.answerTimeout
        options.will = will
        do throws(MQTTConnectionError) {
            return try MQTTConnection(socket, tls, options, at: now)
        } catch {
            throw .unanswered(settings, error, tls?.explanation)
        }
    }
}

extension BrokerFault {
    /// Returns the fault for a connection that ended before CONNACK.
    ///
    /// - Parameters:
    ///   - settings: The broker's settings.
    ///   - error: The connection's error.
    ///   - explanation: The problem that TLS found.
    /// - Returns: The fault and its likely cause.
    static func unanswered(
        _ settings: DeliverySettings,
        _ error: MQTTConnectionError,
        _ explanation: String?
    ) -> BrokerFault {
        if let explanation { return BrokerFault(.security, explanation) }
        switch error {
        case .violation(let violation) where settings.tls == nil:
            let advice = "if its port is one for TLS, write mqtts:// into mqtt.url"
            return .unreachable(settings, "it does not speak MQTT: \(violation); \(advice)")
        case .violation(let violation): return .unreachable(settings, "it does not speak MQTT: \(violation)")
        case let error where error.isEndOfConnection:
            return .unreachable(settings, "it ended the connection without an answer; \(advice(settings))")
        default: return .unreachable(settings, "\(error)")
        }
    }

    private static func advice(_ settings: DeliverySettings) -> String {
        switch settings.tls {
        case nil: "if its port is one for TLS, write mqtts:// into mqtt.url"
        case let tls? where tls.certificate == nil:
            "check that its port is one for TLS, and whether it demands a client certificate (mqtt.tls.certificate)"
        case _?: "check that its port is one for TLS, and that it knows mqtt.tls.certificate"
        }
    }

    static func unreachable(
        _ settings: DeliverySettings,
        _ detail: String,
        wasBrokerDown: Bool = false
    ) -> BrokerFault {
        let words = "cannot reach the broker at \(settings.host):\(settings.port): \(detail)"
        return BrokerFault(.unreachable, words, wasBrokerDown: wasBrokerDown)
    }
}
