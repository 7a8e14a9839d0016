import COpenSSL
import GattherdSync
import Glibc

/// The TLS settings of the connection to the broker.
public struct TLSSettings: Hashable, Sendable {
    /// A version of TLS; older versions are insecure.
    public enum Version: Hashable, Sendable {
        case v12
        case v13
    }

    /// A PEM file with the authorities for the broker's certificate; `nil` for the system's.
    public var ca: String?
    /// A PEM file with the client's certificate and its intermediates, for a broker that demands one.
    public var certificate: String?
    /// A PEM file with the key of ``certificate``, without a pass phrase.
    public var key: String?
    /// The name or address that the broker's certificate must have; `nil` for the broker's host.
    public var serverName: String?
    public var minimumVersion = Version.v12

    public init() {}

    /// Reads the files as a connection would.
    ///
    /// - Throws: ``TLSFileError`` for the first file that cannot be used.
    public func check() throws(TLSFileError) {
        _ = try TLSContext(self, host: "localhost")
    }
}

/// A TLS file that cannot be used.
public struct TLSFileError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Role: Hashable, Sendable {
        case ca
        case certificate
        case key
    }

    /// The file's role; `nil` if it is none of the configured files.
    public let role: Role?
    /// The problem and its remedy.
    public let description: String
}

/// The keys, authorities and rules of one TLS connection, and its first error.
///
/// OpenSSL verifies the broker's name; ``explanation`` describes the problem in words.
///
/// `@unchecked Sendable` is safe: one thread at a time uses it, together with its ``TLSConnection``.
@safe public final class TLSContext: @unchecked Sendable {
    /// The `SSL_CTX`.
    let raw: OpaquePointer
    private let settings: TLSSettings
    /// The name or address in the broker's certificate.
    private let name: String
    /// The first error, in words.
    public private(set) var explanation: String?

    /// Reads the files.
    ///
    /// - Parameters:
    ///   - settings: The files and rules.
    ///   - host: The broker's host, which its certificate must name unless the settings give another name.
    /// - Throws: ``TLSFileError`` for a file that cannot be used.
    public init(_ settings: TLSSettings, host: String) throws(TLSFileError) {
        guard let raw = unsafe SSL_CTX_new(TLS_client_method()) else {
            throw TLSFileError(role: nil, description: "TLS cannot be used: \(Self.lastError())")
        }
        unsafe self.raw = raw
        self.settings = settings
        name = settings.serverName ?? host
        let version = settings.minimumVersion == .v13 ? TLS1_3_VERSION : TLS1_2_VERSION
        unsafe copenssl_set_minimum_version(raw, version)
        // Without this, a write might have to wait for the broker's bytes.
        unsafe copenssl_refuse_renegotiation(raw)
        try loadAuthorities()
        try loadCertificate()
        expectName()
        observe()
    }

    deinit {
        unsafe SSL_CTX_free(raw)
    }

    /// Loads the authorities that may sign the broker's certificate.
    private func loadAuthorities() throws(TLSFileError) {
        guard let file = settings.ca else {
            unsafe SSL_CTX_set_default_verify_paths(raw)
            return
        }
        guard unsafe SSL_CTX_load_verify_file(raw, file) == 1 else {
            throw unusable(.ca, file, "it must have certificates in PEM form")
        }
    }

    /// Loads the client's certificate and key.
    private func loadCertificate() throws(TLSFileError) {
        if let file = settings.certificate, unsafe SSL_CTX_use_certificate_chain_file(raw, file) != 1 {
            throw unusable(.certificate, file, "it must have the client's certificate in PEM form")
        }
        guard let file = settings.key else { return }
        // An empty pass phrase replaces the prompt on the terminal.
        unsafe SSL_CTX_set_default_passwd_cb(raw) { _, _, _, _ in 0 }
        guard unsafe SSL_CTX_use_PrivateKey_file(raw, file, SSL_FILETYPE_PEM) == 1,
            unsafe SSL_CTX_check_private_key(raw) == 1
        else {
            throw unusable(.key, file, "it must have the certificate's key in PEM form, without a pass phrase")
        }
    }

    private func unusable(_ role: TLSFileError.Role, _ file: String, _ advice: String) -> TLSFileError {
        let isReadable = unsafe access(file, R_OK) == 0
        let reason = isReadable ? "\(Self.lastError()); \(advice)" : Self.words(of: errno)
        return TLSFileError(role: role, description: "'\(file)' cannot be used: \(reason)")
    }

    private func expectName() {
        let parameters = unsafe SSL_CTX_get0_param(raw)
        if isAddress {
            unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, name)
        } else {
            unsafe X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
            unsafe X509_VERIFY_PARAM_set1_host(parameters, name, 0)
        }
    }

    /// The server name for SNI; `nil` for an address.
    var serverName: String? { isAddress ? nil : name }

    private var isAddress: Bool {
        var octets = in6_addr()
        return unsafe inet_pton(AF_INET, name, &octets) == 1 || inet_pton(AF_INET6, name, &octets) == 1
    }

    private static func words(of code: Int32) -> String { SystemError(code).description }

    /// The message of OpenSSL's last error.
    private static func lastError() -> String {
        defer { ERR_clear_error() }
        let words = unsafe ERR_reason_error_string(ERR_peek_last_error())
        return unsafe words.map { unsafe String(cString: $0) } ?? "unknown reason"
    }
}

/// OpenSSL's callbacks during a handshake.
extension TLSContext {
    private func observe() {
        let pointer = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe SSL_CTX_set_ex_data(raw, 0, pointer)
        unsafe SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nil)
        unsafe SSL_CTX_set_cert_verify_callback(
            raw,
            { store, pointer in
                let isGood = unsafe X509_verify_cert(store)
                if isGood != 1, let store = unsafe store { unsafe TLSContext.at(pointer)?.record(store) }
                return isGood
            },
            pointer
        )
        unsafe SSL_CTX_set_info_callback(raw) { connection, what, value in
            guard let connection = unsafe connection else { return }
            let pointer = unsafe SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), 0)
            unsafe TLSContext.at(pointer)?.record(what, value)
        }
    }

    /// Borrows the context, which outlives its connections.
    private static func at(_ pointer: UnsafeMutableRawPointer?) -> TLSContext? {
        unsafe pointer.map { unsafe Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }

    private func record(_ what: Int32, _ value: Int32) {
        switch what {
        case SSL_CB_READ_ALERT: record(TLSAlert(value))
        case SSL_CB_CONNECT_EXIT where value <= 0: recordError()
        default: break
        }
    }

    private func record(_ store: OpaquePointer) {
        let problem = unsafe CertificateProblem(store)
        explanation = explanation ?? problem.words(expecting: name)
    }

    private func record(_ alert: TLSAlert) {
        guard alert.isError else { return }
        explanation = explanation ?? alert.words(hasCertificate: settings.certificate != nil)
    }

    /// Records an alert or error; a callback without an error only waits for the socket.
    private func recordError() {
        explanation = explanation ?? TLSFailure(ERR_peek_last_error())?.words
    }
}
