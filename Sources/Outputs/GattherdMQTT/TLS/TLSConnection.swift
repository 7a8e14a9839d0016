import COpenSSL

/// The TLS state of one connection, between plain bytes and the wire, without a socket.
///
/// All received bytes are decrypted before more are read, so nothing is left inside without a socket event.
@safe final class TLSConnection {
    /// The maximum number of plain bytes encrypted at once.
    private static let recordsLimit = 65_536
    /// The maximum encrypted bytes that the broker has not read; beyond it, reading from the broker pauses.
    private static let sealedLimit = 262_144

    private let raw: OpaquePointer
    private let context: TLSContext
    /// The memory BIOs that OpenSSL reads from and writes to; owned by `raw`.
    private let incoming: OpaquePointer
    private let outgoing: OpaquePointer
    /// The encrypted bytes that the kernel has not accepted.
    private var sealed = OutboundBytes()
    /// The number of plain bytes encrypted in `sealed`.
    private var sealedCount = 0
    private var scratch: [UInt8] = []

    /// Starts a handshake; its first bytes wait at once.
    init(_ context: TLSContext) throws(MQTTConnectionError) {
        guard let raw = unsafe SSL_new(context.raw) else { throw .security }
        guard let incoming = unsafe BIO_new(BIO_s_mem()), let outgoing = unsafe BIO_new(BIO_s_mem()) else {
            unsafe SSL_free(raw)
            throw .security
        }
        // An empty BIO is not the end of the connection.
        unsafe copenssl_set_empty_return(incoming, -1)
        unsafe SSL_set_bio(raw, incoming, outgoing)
        unsafe SSL_set_connect_state(raw)
        if let name = context.serverName { unsafe copenssl_set_server_name(raw, name) }
        unsafe self.raw = raw
        self.context = context
        unsafe self.incoming = incoming
        unsafe self.outgoing = outgoing
        try shakeHands()
    }

    deinit {
        unsafe SSL_free(raw)
    }

    var isEstablished: Bool { unsafe SSL_is_init_finished(raw) == 1 }
    /// True while the kernel has to accept bytes.
    var wantsToSend: Bool { !sealed.isEmpty }

    /// True while the broker leaves too many bytes unread, such as answers to key updates.
    var isCongested: Bool { sealed.unsent.count > Self.sealedLimit }

    /// The number of encrypted bytes that the kernel has accepted.
    var sentCount: Int { sealed.sent }

    /// Decrypts bytes from the wire.
    ///
    /// - Parameters:
    ///   - bytes: All bytes read from the socket.
    ///   - buffer: Room for plain bytes.
    ///   - take: Called with the buffer and the number of bytes in it.
    /// - Throws: ``MQTTConnectionError/ended`` after the peer's close alert, or the error.
    func receive(
        _ bytes: ArraySlice<UInt8>,
        by buffer: inout [UInt8],
        _ take: ([UInt8], Int) throws(MQTTConnectionError) -> Void
    ) throws(MQTTConnectionError) {
        _ = unsafe bytes.withUnsafeBytes { raw in
            unsafe BIO_write(incoming, raw.baseAddress, Int32(clamping: raw.count))
        }
        defer { collect() }
        if !isEstablished { try shakeHands() }
        while isEstablished {
            ERR_clear_error()
            let count = unsafe SSL_read(raw, &buffer, Int32(clamping: buffer.count))
            guard count > 0 else { return try check(count) }
            try take(buffer, Int(count))
        }
    }

    /// Encrypts and sends as much as the kernel accepts.
    ///
    /// - Parameters:
    ///   - bytes: Plain bytes; bytes not reported as sent must be passed again.
    ///   - socket: The socket to send to.
    /// - Returns: The number of sent bytes; `nil` if the connection has ended.
    /// - Throws: ``MQTTConnectionError/security`` if encryption fails.
    func send(_ bytes: ArraySlice<UInt8>, to socket: StreamSocket) throws(MQTTConnectionError) -> Int? {
        guard flush(to: socket) else { return nil }
        if sealed.isEmpty, sealedCount == 0, isEstablished, !bytes.isEmpty {
            try seal(bytes.prefix(Self.recordsLimit))
            guard flush(to: socket) else { return nil }
        }
        guard sealed.isEmpty else { return 0 }
        defer { sealedCount = 0 }
        return sealedCount
    }

    /// Sends encrypted bytes; returns false if the connection has ended.
    private func flush(to socket: StreamSocket) -> Bool {
        guard !sealed.isEmpty else { return true }
        guard let count = socket.send(sealed.unsent) else { return false }
        sealed.remove(count)
        return true
    }

    /// Encrypts the close alert, which follows the bytes encrypted before.
    func end() {
        guard isEstablished else { return }
        ERR_clear_error()
        unsafe SSL_shutdown(raw)
        collect()
    }

    private func seal(_ bytes: ArraySlice<UInt8>) throws(MQTTConnectionError) {
        ERR_clear_error()
        let count = unsafe bytes.withUnsafeBytes { bytes in
            unsafe SSL_write(raw, bytes.baseAddress, Int32(clamping: bytes.count))
        }
        collect()
        guard count > 0 else { return try check(count) }
        sealedCount = Int(count)
    }

    private func shakeHands() throws(MQTTConnectionError) {
        ERR_clear_error()
        let code = unsafe SSL_do_handshake(raw)
        collect()
        if code <= 0 { try check(code) }
    }

    /// Returns if OpenSSL only waits for more bytes; throws otherwise.
    private func check(_ code: Int32) throws(MQTTConnectionError) {
        switch unsafe SSL_get_error(raw, code) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return
        case SSL_ERROR_ZERO_RETURN: throw .ended
        default: throw .security
        }
    }

    /// Collects the bytes that OpenSSL wrote for the wire.
    private func collect() {
        while case let count = unsafe BIO_ctrl_pending(outgoing), count > 0 {
            if scratch.count < 16_384 { scratch = [UInt8](repeating: 0, count: 16_384) }
            let taken = unsafe BIO_read(outgoing, &scratch, Int32(scratch.count))
            guard taken > 0 else { return }
            sealed.append(scratch.prefix(Int(taken)))
        }
    }
}
