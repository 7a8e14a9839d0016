import COpenSSL

/// An alert that the broker sent before it ended a TLS connection (RFC 8446, "Alert Protocol").
struct TLSAlert: Hashable {
    /// OpenSSL's value: level and description.
    private let value: Int32
    private var description: Int32 { value & 0xFF }

    init(_ value: Int32) {
        self.value = value
    }

    /// True for alerts that end the connection, other than a normal end.
    ///
    /// A warning of TLS 1.2 does not, such as that the server's name is unknown.
    var isError: Bool {
        value >> 8 == SSL3_AL_FATAL && description != SSL3_AD_CLOSE_NOTIFY && description != TLS1_AD_USER_CANCELLED
    }

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
        // A lost connection is common and no evidence of a TLS fault.
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

/// The reason why a certificate is not trusted.
struct CertificateProblem: Hashable {
    /// The error code, one of `X509_V_ERR_…`.
    let code: Int32
    /// The certificate's subject and issuer.
    let subject: String
    let issuer: String
    /// The start and the end of the certificate's validity.
    let begin: String
    let end: String

    /// Reads the error that `X509_verify_cert` found.
    init(_ store: OpaquePointer) {
        code = unsafe X509_STORE_CTX_get_error(store)
        guard let certificate = unsafe X509_STORE_CTX_get_current_cert(store) else {
            (subject, issuer, begin, end) = ("", "", "an unknown time", "an unknown time")
            return
        }
        subject = unsafe Self.text(X509_get_subject_name(certificate))
        issuer = unsafe Self.text(X509_get_issuer_name(certificate))
        begin = unsafe Self.text(X509_get0_notBefore(certificate))
        end = unsafe Self.text(X509_get0_notAfter(certificate))
    }

    /// The problem and its remedy, for a certificate expected for `name`.
    func words(expecting name: String) -> String {
        switch code {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            "the certificate \(subject) expired at \(end); renew it, or set this host's clock"
        case X509_V_ERR_CERT_NOT_YET_VALID:
            "the certificate \(subject) is not valid before \(begin); set this host's clock"
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            "the broker's certificate \(subject) is not for '\(name)'; "
                + "set the certificate's name in mqtt.url or mqtt.tls.server_name"
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
            "the broker's certificate \(subject) is signed by itself and unknown; "
                + "if it is the right one, write its file into mqtt.tls.ca"
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            "the broker's certificate \(subject) is signed by \(issuer), which is unknown; "
                + "write the file of that authority's certificate into mqtt.tls.ca"
        default:
            "the certificate \(subject) cannot be trusted: \(reason)"
        }
    }

    private var reason: String { unsafe String(cString: X509_verify_cert_error_string(Int(code))) }

    /// A distinguished name as one line.
    private static func text(_ name: OpaquePointer?) -> String {
        var line = [CChar](repeating: 0, count: 256)
        guard unsafe X509_NAME_oneline(name, &line, Int32(line.count)) != nil else { return "" }
        return "'" + String(decoding: line.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
            + "'"
    }

    /// A time as OpenSSL prints it.
    private static func text(_ time: UnsafePointer<ASN1_TIME>?) -> String {
        let memory = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(memory) }
        var line = [UInt8](repeating: 0, count: 64)
        guard unsafe ASN1_TIME_print(memory, time) == 1 else { return "an unknown time" }
        let count = unsafe BIO_read(memory, &line, Int32(line.count))
        return String(decoding: line.prefix(Int(max(0, count))), as: UTF8.self)
    }
}
