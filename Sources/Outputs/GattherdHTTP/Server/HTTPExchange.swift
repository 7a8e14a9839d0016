import CMicroHTTPD
import GattherdSync

/// A request and its response in libmicrohttpd.
///
/// Used on the loop's thread only.
@safe final class HTTPExchange {
    enum Phase {
        /// The body is being received.
        case receiving
        /// The response is being prepared.
        case pending
        case ready(HTTPResponse)
        /// libmicrohttpd is sending the response.
        case sending
    }

    let id: UInt64
    /// The connection's socket.
    let descriptor: Int32
    var request: HTTPRequest
    var phase = Phase.receiving
    /// The maximum number of bytes of the body.
    var bodyLimit = 0
    /// True as soon as the client of a pending request has closed its side of the connection.
    let hangUp = LatestValue(false)
    private(set) var isSuspended = false
    private let connection: OpaquePointer

    init(id: UInt64, _ connection: OpaquePointer, _ request: HTTPRequest) {
        self.id = id
        unsafe self.connection = connection
        self.request = request
        descriptor = unsafe cmicrohttpd_descriptor(connection)
    }

    /// The request, for the server.
    var pendingRequest: PendingHTTPRequest { PendingHTTPRequest(exchange: id, request: request, hangUp: hangUp) }

    /// Suspends the connection; only within callbacks of the library.
    func suspend() {
        guard !isSuspended else { return }
        isSuspended = true
        unsafe MHD_suspend_connection(connection)
    }

    /// Resumes the connection at the next run of libmicrohttpd.
    func resume() {
        guard isSuspended else { return }
        isSuspended = false
        unsafe MHD_resume_connection(connection)
    }

    /// Passes a response to the library.
    ///
    /// - Returns: False if it cannot be sent; the connection must be closed.
    func send(_ response: HTTPResponse) -> Bool {
        phase = .sending
        guard let raw = unsafe raw(response.content) else { return false }
        defer { unsafe MHD_destroy_response(raw) }
        for header in response.headers { unsafe MHD_add_response_header(raw, header.name, header.value) }
        return unsafe MHD_queue_response(connection, UInt32(clamping: response.status), raw) == .YES
    }

    private func raw(_ content: HTTPResponse.Content) -> OpaquePointer? {
        switch content {
        case .bytes(let bytes):
            var bytes = bytes
            return unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe MHD_create_response_from_buffer(buffer.count, buffer.baseAddress, .RESPMEM_MUST_COPY)
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

/// The source of an event stream for libmicrohttpd.
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

    /// Copies queued bytes; -1 ends the stream.
    func fill(_ buffer: UnsafeMutablePointer<CChar>?, _ room: Int) -> Int {
        guard let buffer = unsafe buffer else { return -1 }
        switch channel.dequeue(room) {
        case .bytes(let bytes):
            unsafe UnsafeMutableRawPointer(buffer).copyMemory(from: bytes, byteCount: bytes.count)
            return bytes.count
        case .nothing:
            exchange.suspend()
            return 0
        case .end:
            return -1
        }
    }
}

extension HTTPRequest {
    /// Reads the head of a request from libmicrohttpd; `nil` for an unknown method.
    init?(_ connection: OpaquePointer, url: UnsafePointer<CChar>?, method: UnsafePointer<CChar>?) {
        guard let url = unsafe url, let name = unsafe method,
            let method = HTTPRequest.Method(rawValue: unsafe String(cString: name))
        else { return nil }
        self.init(method, unsafe String(cString: url))
        let arguments = unsafe ValueCollector(connection, .GET_ARGUMENT_KIND) { $0 }
        query = arguments.values
        repeated = arguments.repeated
        headers = unsafe ValueCollector(connection, .HEADER_KIND) { $0.lowercased() }.values
    }
}

/// A reader of names and values from libmicrohttpd.
private final class ValueCollector {
    private(set) var values: [String: String] = [:]
    /// The names that occur more than once.
    private(set) var repeated: Set<String> = []
    private let normal: (String) -> String
    private let joins: Bool

    init(_ connection: OpaquePointer, _ kind: MHD_ValueKind, _ normal: @escaping (String) -> String) {
        joins = kind == .HEADER_KIND
        self.normal = normal
        unsafe MHD_get_connection_values(
            connection,
            kind,
            { collector, _, name, value in
                guard let collector = unsafe collector, let name = unsafe name else { return .YES }
                let text = unsafe value.map { unsafe String(cString: $0) } ?? ""
                unsafe Unmanaged<ValueCollector>.fromOpaque(collector).takeUnretainedValue()
                    .add(String(cString: name), text)
                return .YES
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    private func add(_ name: String, _ value: String) {
        let name = normal(name)
        guard let first = values[name] else { return values[name] = value }
        repeated.insert(name)
        if joins { values[name] = first + ", " + value }
    }
}
