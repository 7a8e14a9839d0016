import COpenSSL
import TestKit

/// The broker's end of TLS on a socket, with blocking calls.
///
/// `@unchecked Sendable` is safe: only the thread of the scripted broker uses it.
@safe final class TLSPeer: @unchecked Sendable {
    private let context: OpaquePointer
    private let connection: OpaquePointer

    /// Performs the handshake; `nil` if it fails.
    init?(_ descriptor: Int32, _ identity: Authority.Identity) {
        guard let context = unsafe SSL_CTX_new(TLS_server_method()) else { return nil }
        unsafe SSL_CTX_use_certificate_chain_file(context, identity.certificate)
        unsafe SSL_CTX_use_PrivateKey_file(context, identity.key, SSL_FILETYPE_PEM)
        guard let connection = unsafe SSL_new(context) else {
            unsafe SSL_CTX_free(context)
            return nil
        }
        unsafe self.context = context
        unsafe self.connection = connection
        unsafe SSL_set_fd(connection, descriptor)
        guard unsafe SSL_accept(connection) == 1 else { return nil }
    }

    deinit {
        unsafe SSL_free(connection)
        unsafe SSL_CTX_free(context)
    }

    /// Waits for this number of octets; `nil` if the client has disconnected.
    func receive(_ count: Int) -> [UInt8]? {
        var octets: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: count)
        while octets.count < count {
            let taken = unsafe SSL_read(connection, &buffer, Int32(count - octets.count))
            guard taken > 0 else { return nil }
            octets += buffer.prefix(Int(taken))
        }
        return octets
    }

    /// Renews the keys and demands that the client does, too; false if the client has disconnected.
    func renewKeys() -> Bool {
        unsafe SSL_key_update(connection, SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(connection) == 1
    }

    func send(_ octets: [UInt8]) {
        _ = unsafe SSL_write(connection, octets, Int32(octets.count))
    }
}
