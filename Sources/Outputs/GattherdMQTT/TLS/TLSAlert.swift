import COpenSSL

/// An alert that the broker sent before it ended a TLS connection (RFC 8446, "Alert Protocol").
struct TLSAlert: Hashable {
    /// OpenSSL's value: level and description.
    private let value: Int32
    private var description: Int32 { value & 0xFF }

    init(_ value: Int32) {
        self.value = value
    }

    /// True for alerts other than a normal end of the connection.
    var isError: Bool { description != SSL3_AD_CLOSE_NOTIFY && description != TLS1_AD_USER_CANCELLED }

    /// The problem and its remedy; depends on whether a client certificate was sent.
    func words(hasCertificate: Bool) -> String {
        let said = unsafe String(cString: SSL_alert_desc_string_long(value))
        switch description {
        case TLS13_AD_CERTIFICATE_REQUIRED:
            return "the broker demands a client certificate; set mqtt.tls.certificate and mqtt.tls.key"
        case SSL3_AD_HANDSHAKE_FAILURE where !hasCertificate:
            return "the broker refuses the TLS handshake (\(said)); if it demands a client certificate, "
                + "set mqtt.tls.certificate and mqtt.tls.key"
        case SSL3_AD_BAD_CERTIFICATE, SSL3_AD_UNSUPPORTED_CERTIFICATE, SSL3_AD_CERTIFICATE_REVOKED,
            SSL3_AD_CERTIFICATE_EXPIRED, SSL3_AD_CERTIFICATE_UNKNOWN, TLS1_AD_UNKNOWN_CA, TLS1_AD_ACCESS_DENIED,
            TLS1_AD_DECRYPT_ERROR:
            return "the broker does not accept the client certificate (\(said)); check mqtt.tls.certificate"
        case TLS1_AD_PROTOCOL_VERSION:
            return "the broker supports no version of TLS that mqtt.tls.min_version allows"
        default: return "the broker refuses the TLS connection (\(said))"
        }
    }
}

/// The reason for a handshake failure on our side, other than a certificate.
struct TLSFailure: Hashable {
    private let error: UInt

    /// Reads OpenSSL's error; `nil` if there is none, or none of the protocol.
    init?(_ error: UInt) {
        // A lost connection is common and says nothing about TLS.
        let reason = copenssl_protocol_error(error)
        guard reason != 0, reason != SSL_R_UNEXPECTED_EOF_WHILE_READING else { return nil }
        self.error = error
    }

    /// The problem and its remedy.
    var words: String {
        switch copenssl_protocol_error(error) {
        case SSL_R_WRONG_VERSION_NUMBER, SSL_R_PACKET_LENGTH_TOO_LONG:
            "the port does not speak TLS; use the broker's port for TLS, or mqtt:// in a network that you trust"
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
            "the broker supports no version of TLS that mqtt.tls.min_version allows"
        default: "the TLS handshake failed: \(reason)"
        }
    }

    private var reason: String {
        unsafe ERR_reason_error_string(error).map { unsafe String(cString: $0) } ?? "unknown reason"
    }
}
