import CMicroHTTPD

/// One request and its answer, as libmicrohttpd knows them; touched on the loop's thread only.
@safe final class HTTPExchange {
    enum Phase {
        /// The body comes.
        case receiving
        /// Somebody thinks about it.
        case asked
        case answered(HTTPResponse)
        /// The library has the answer.
        case sending
    }

    let id: UInt64
    /// The connection's socket.
    let descriptor: Int32
    var request: HTTPRequest
    var phase = Phase.receiving
    private(set) var isSuspended = false
    private let connection: OpaquePointer

    init(id: UInt64, _ connection: OpaquePointer, _ request: HTTPRequest) {
        self.id = id
        unsafe self.connection = connection
        self.request = request
        descriptor = unsafe cmicrohttpd_descriptor(connection)
    }

    /// Lets the connection rest; from within the library's calls only.
    func suspend() {
        guard !isSuspended else { return }
        isSuspended = true
        unsafe MHD_suspend_connection(connection)
    }

    /// Lets the connection go on when the daemon runs next.
    func resume() {
        guard isSuspended else { return }
        isSuspended = false
        unsafe MHD_resume_connection(connection)
    }

    /// Hands an answer to the library.
    ///
    /// - Returns: False when it cannot be sent; the connection is to be closed.
    func send(_ response: HTTPResponse) -> Bool {
        phase = .sending
        guard let raw = unsafe raw(response.content) else { return false }
        defer { unsafe MHD_destroy_response(raw) }
        for header in response.headers { unsafe MHD_add_response_header(raw, header.name, header.value) }
        return unsafe MHD_queue_response(connection, UInt32(clamping: response.status), raw) == .YES
    }

    private func raw(_ content: HTTPResponse.Content) -> OpaquePointer? {
        switch content {
        case .octets(let octets):
            var octets = octets
            return unsafe octets.withUnsafeMutableBytes { bytes in
                unsafe MHD_create_response_from_buffer(bytes.count, bytes.baseAddress, .RESPMEM_MUST_COPY)
            }
        case .events(let channel):
            return unsafe raw(Unmanaged.passRetained(EventStreamReader(channel, self)).toOpaque())
        }
    }

    private func raw(_ reader: UnsafeMutableRawPointer) -> OpaquePointer? {
        let response = unsafe MHD_create_response_from_callback(
            .max,
            EventStreamReader.blockSize,
            { reader, _, buffer, room in unsafe EventStreamReader.at(reader)?.fill(buffer, room) ?? -1 },
            reader,
            { reader in unsafe EventStreamReader.release(reader) }
        )
        if unsafe response == nil { unsafe EventStreamReader.release(reader) }
        return unsafe response
    }
}

/// What libmicrohttpd asks for the octets of a stream of events.
private final class EventStreamReader {
    static let blockSize = 16_384

    private let channel: EventChannel
    private let exchange: HTTPExchange

    init(_ channel: EventChannel, _ exchange: HTTPExchange) {
        self.channel = channel
        self.exchange = exchange
    }

    deinit {
        channel.abandon()
    }

    static func at(_ pointer: UnsafeMutableRawPointer?) -> EventStreamReader? {
        unsafe pointer.map { unsafe Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }

    static func release(_ pointer: UnsafeMutableRawPointer?) {
        if let pointer = unsafe pointer { unsafe Unmanaged<EventStreamReader>.fromOpaque(pointer).release() }
    }

    /// Copies what waits; -1 ends the stream.
    func fill(_ buffer: UnsafeMutablePointer<CChar>?, _ room: Int) -> Int {
        guard let buffer = unsafe buffer else { return -1 }
        switch channel.take(room) {
        case .octets(let octets):
            unsafe UnsafeMutableRawPointer(buffer).copyMemory(from: octets, byteCount: octets.count)
            return octets.count
        case .nothing:
            exchange.suspend()
            return 0
        case .end:
            return -1
        }
    }
}
