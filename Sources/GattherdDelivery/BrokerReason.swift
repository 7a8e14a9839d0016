import CMosquitto
import GattherdMachines

/// A reason of the broker's, in words and by what is to be done about it.
struct BrokerReason: Hashable {
    /// A reason code of MQTT 5, or a CONNACK return code of MQTT 3.1.1.
    let code: Int32

    var words: String {
        code >= 0x80
            ? unsafe String(cString: mosquitto_reason_string(code)).lowercased()
            : unsafe String(cString: mosquitto_connack_string(code)).lowercased()
    }

    /// CONNACK refused us.
    var refusal: BrokerFault {
        switch mqtt5_return_codes(UInt32(bitPattern: code)) {
        case MQTT_RC_BAD_USERNAME_OR_PASSWORD, MQTT_RC_NOT_AUTHORIZED, MQTT_RC_BANNED,
            MQTT_RC_BAD_AUTHENTICATION_METHOD, Self.v311(CONNACK_REFUSED_BAD_USERNAME_PASSWORD),
            Self.v311(CONNACK_REFUSED_NOT_AUTHORIZED):
            BrokerFault(.credentials, "the broker refuses our user name or password (\(words)); check mqtt.username")
        case MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION, Self.v311(CONNACK_REFUSED_PROTOCOL_VERSION):
            BrokerFault(.session, "the broker does not speak this version of MQTT; set mqtt.version to another one")
        case MQTT_RC_CLIENTID_NOT_VALID, Self.v311(CONNACK_REFUSED_IDENTIFIER_REJECTED):
            BrokerFault(.session, "the broker does not accept our client id; set mqtt.client_id")
        case MQTT_RC_USE_ANOTHER_SERVER, MQTT_RC_SERVER_MOVED:
            BrokerFault(.session, "the broker sends us elsewhere (\(words)); set mqtt.url")
        case MQTT_RC_QOS_NOT_SUPPORTED: .withoutQoS1
        case MQTT_RC_RETAIN_NOT_SUPPORTED:
            BrokerFault(.busy, "the broker retains nothing, not even a will; the next attempt asks for one that is not")
        default: BrokerFault(.busy, "the broker does not take us now (\(words))")
        }
    }

    /// The broker ended the session with MQTT 5's DISCONNECT; `nil` when it was libmosquitto, whose call says why.
    var loss: BrokerFault? {
        switch mqtt5_return_codes(UInt32(bitPattern: code)) {
        case MQTT_RC_SESSION_TAKEN_OVER:
            BrokerFault(.lost, "another client took our client id; each gateway needs its own mqtt.client_id")
        case let reason where reason.rawValue >= 0x80:
            BrokerFault(.lost, "the broker ended the session (\(words))")
        default: nil
        }
    }

    /// PUBACK.
    var verdict: PublishOutcome.Verdict {
        switch mqtt5_return_codes(UInt32(bitPattern: code)) {
        case MQTT_RC_NO_MATCHING_SUBSCRIBERS: .noSubscribers
        case MQTT_RC_UNSPECIFIED, MQTT_RC_IMPLEMENTATION_SPECIFIC, MQTT_RC_SERVER_BUSY, MQTT_RC_PACKET_ID_IN_USE,
            MQTT_RC_QUOTA_EXCEEDED:
            .busy(words)
        case let reason where reason.rawValue >= 0x80: .refused(words)
        default: .accepted
        }
    }

    /// Says nothing of whether it would help to try again.
    var isVague: Bool {
        switch mqtt5_return_codes(UInt32(bitPattern: code)) {
        case MQTT_RC_UNSPECIFIED, MQTT_RC_IMPLEMENTATION_SPECIFIC: true
        default: false
        }
    }

    /// The message could not even be written.
    static func verdict(of error: MosquittoError) -> PublishOutcome.Verdict {
        switch mosq_err_t(error.code) {
        case MOSQ_ERR_INVAL, MOSQ_ERR_MALFORMED_UTF8, MOSQ_ERR_PAYLOAD_SIZE, MOSQ_ERR_OVERSIZE_PACKET:
            .refused("\(error)")
        default: .busy("\(error)")
        }
    }

    /// CONNACK: a will that is retained is what the broker does not take.
    var forbidsRetaining: Bool { mqtt5_return_codes(UInt32(bitPattern: code)) == MQTT_RC_RETAIN_NOT_SUPPORTED }

    private static func v311(_ code: mqtt311_connack_codes) -> mqtt5_return_codes {
        mqtt5_return_codes(code.rawValue)
    }
}

extension BrokerFault {
    /// Nothing would tell us what arrived.
    static let withoutQoS1 = BrokerFault(
        .session,
        "the broker takes messages of QoS 0 only, and readings need QoS 1; allow it there (mosquitto: max_qos)"
    )
}
