import GattherdMQTT
import GattherdMachines

/// The effects of a broker's reason code on delivery.
extension MQTTReason {
    /// The fault for a CONNACK that refuses the session; `text` is the broker's reason string.
    func refusal(_ text: String? = nil) -> BrokerFault {
        let words = words(text)
        switch self {
        case .badUserNameOrPassword, .notAuthorized, .banned, .badAuthenticationMethod:
            return BrokerFault(
                .credentials,
                "the broker refuses the user name or password (\(words)); check mqtt.username"
            )
        case .unsupportedProtocolVersion:
            return BrokerFault(
                .session,
                "the broker does not support this version of MQTT; change mqtt.version"
            )
        case .clientIdentifierNotValid:
            return BrokerFault(.session, "the broker does not accept the client id; set mqtt.client_id")
        case .useAnotherServer, .serverMoved:
            return BrokerFault(.session, "the broker redirects to another server (\(words)); set mqtt.url")
        case .qosNotSupported: return .withoutQoS1
        case .retainNotSupported:
            return BrokerFault(
                .busy,
                "the broker does not support retained messages; the next attempt uses a will without retain"
            )
        default: return BrokerFault(.busy, "the broker refuses the session for now (\(words))")
        }
    }

    /// The fault for a DISCONNECT of MQTT 5 that ends the session; `nil` if it names no failure.
    func loss(_ text: String? = nil) -> BrokerFault? {
        if self == .sessionTakenOver {
            return BrokerFault(
                .lost,
                "another client connected with the same client id; each gateway needs its own mqtt.client_id"
            )
        }
        guard isFailure else { return nil }
        let detail = "the broker ended the session (\(words(text)))"
        return BrokerFault(.lost, detail, wasBrokerDown: self == .serverShuttingDown)
    }

    /// The outcome of a message whose PUBACK has this reason.
    var verdict: PublishOutcome.Verdict {
        switch self {
        case .noMatchingSubscribers: .noSubscribers
        case .unspecified, .implementationSpecific, .serverBusy, .packetIdentifierInUse, .messageRateTooHigh,
            .quotaExceeded:
            .busy(words)
        case let reason where reason.isFailure: .refused(words)
        default: .accepted
        }
    }

    /// True if PUBACK refuses the topic, not only the message.
    var concernsTopic: Bool { self == .notAuthorized || self == .topicNameInvalid }

    /// True if a broker may end a session with this reason because of a topic or a message.
    var mayConcernTopic: Bool {
        switch self {
        case .unspecified, .malformedPacket, .protocolError, .implementationSpecific, .notAuthorized,
            .topicFilterInvalid, .topicNameInvalid, .packetTooLarge, .payloadFormatInvalid, .retainNotSupported,
            .qosNotSupported, .sharedSubscriptionsNotSupported, .subscriptionIdentifiersNotSupported,
            .wildcardSubscriptionsNotSupported:
            true
        default: !isFailure
        }
    }

    /// True if the reason does not state whether a retry may succeed.
    var isVague: Bool { self == .unspecified || self == .implementationSpecific }

    /// True if CONNACK refuses a retained will.
    var forbidsRetaining: Bool { self == .retainNotSupported }
}

extension MQTTRefusal {
    /// The verdict on a reading that could not be written.
    var verdict: PublishOutcome.Verdict {
        switch self {
        case .tooLarge, .invalidTopic, .tooLong: .refused("\(self)")
        case .noIdentifier: .busy("\(self)")
        // The broker has ended the session, which is reported next.
        case .notConnected: .deferred
        }
    }
}

extension BrokerFault {
    /// The fault for a session in which not even the gateway's state can be published.
    static func withoutState(_ topic: String, _ error: MQTTRefusal) -> BrokerFault {
        let remedy = "raise the broker's limit of packets (mosquitto: max_packet_size), or shorten mqtt.base_topic"
        return BrokerFault(.session, "'online' on '\(topic)' cannot be published: \(error); \(remedy)")
    }

    /// The fault for a broker without QoS 1, which cannot confirm the arrival of readings.
    static let withoutQoS1 = BrokerFault(
        .session,
        "the broker accepts QoS 0 only, but readings need QoS 1; allow it there (mosquitto: max_qos)"
    )
}
