import CMosquitto
import COpenSSL
import GattherdMachines
import Glibc

/// One `struct mosquitto` for one session; frees it, and closes its socket, when it goes away.
///
/// The external loop: the owner watches ``socket`` and calls ``read()``, ``write()`` and ``tick()``; what
/// the library tells meanwhile is collected for ``takeEvents()``. One thread uses it at a time.
///
/// `@unchecked Sendable` is safe: the handle cannot be copied, and libmosquitto's objects are not bound to
/// the thread that made them.
@safe struct MosquittoHandle: ~Copyable, @unchecked Sendable {
    private let raw: OpaquePointer
    private let context: Unmanaged<CallbackContext>
    private let version: DeliverySettings.Version
    private let lists = PropertyLists()
    let tls: TLSContext?

    /// Makes a client that is not connected.
    ///
    /// - Parameters:
    ///   - settings: Client id and version.
    ///   - tls: Secures the connection; each one needs its own.
    /// - Throws: ``MosquittoError`` when there is no memory.
    init(_ settings: DeliverySettings, _ tls: TLSContext?) throws(MosquittoError) {
        MosquittoLibrary.use()
        let context = unsafe Unmanaged.passRetained(CallbackContext())
        guard let raw = unsafe mosquitto_new(settings.clientID, true, context.toOpaque()) else {
            let error = MosquittoError(code: MOSQ_ERR_ERRNO.rawValue)
            unsafe context.release()
            throw error
        }
        unsafe self.raw = raw
        unsafe self.context = context
        self.tls = tls
        version = settings.version
        unsafe CallbackContext.install(on: raw)
    }

    deinit {
        unsafe mosquitto_destroy(raw)
        unsafe context.release()
    }

    /// Says how the session will be; before ``connect(_:)``.
    ///
    /// - Parameters:
    ///   - settings: Version and credentials.
    ///   - will: What the broker publishes for us when we vanish.
    /// - Throws: ``MosquittoError`` for a topic or a name that cannot be.
    func configure(_ settings: DeliverySettings, will: BrokerWill?) throws(MosquittoError) {
        let version = settings.version == .v5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311
        try MosquittoError.check(unsafe mosquitto_int_option(raw, MOSQ_OPT_PROTOCOL_VERSION, version))
        try MosquittoError.check(unsafe mosquitto_int_option(raw, MOSQ_OPT_TCP_NODELAY, 1))
        // Ours is the window; the library must not hold a message back.
        try MosquittoError.check(unsafe mosquitto_int_option(raw, MOSQ_OPT_SEND_MAXIMUM, 65_535))
        if let will {
            let payload = Array(will.payload.utf8)
            let count = Int32(payload.count)
            try MosquittoError.check(unsafe mosquitto_will_set(raw, will.topic, count, payload, 1, will.isRetained))
        }
        if let username = settings.username {
            try MosquittoError.check(unsafe mosquitto_username_pw_set(raw, username, settings.password?.text))
        }
        guard let tls else { return }
        try MosquittoError.check(unsafe mosquitto_int_option(raw, MOSQ_OPT_SSL_CTX_WITH_DEFAULTS, 0))
        try MosquittoError.check(unsafe mosquitto_opts_set(raw, MOSQ_OPT_SSL_CTX, UnsafeMutableRawPointer(tls.raw)))
    }

    /// Begins to connect to a numeric address.
    func connect(to address: String, _ settings: DeliverySettings) throws(MosquittoError) {
        try MosquittoError.check(
            unsafe mosquitto_connect_async(raw, address, Int32(settings.port), settings.keepaliveSeconds)
        )
    }

    /// The connection's descriptor, which can change with each call; -1 without one.
    var socket: Int32 { unsafe mosquitto_socket(raw) }
    /// During a handshake the library always wants to write its CONNECT, but only TLS knows what it waits for.
    var wantsToWrite: Bool {
        if let connection = unsafe secured, unsafe SSL_in_init(connection) != 0 {
            return unsafe SSL_want(connection) != SSL_READING
        }
        return unsafe mosquitto_want_write(raw)
    }

    /// What TLS found to be wrong, in words.
    var complaint: String? { tls?.complaint }

    /// Takes what the broker sent; to be called when the socket is readable.
    ///
    /// What TLS has decrypted already makes no socket readable, so nothing of it may be left.
    func read() throws(MosquittoError) {
        repeat {
            try MosquittoError.check(unsafe mosquitto_loop_read(raw, 1))
        } while unsafe socket >= 0 && secured.map { unsafe SSL_pending($0) > 0 } ?? false
    }

    /// The `SSL` of the connection, while there is one.
    private var secured: OpaquePointer? {
        guard tls != nil else { return nil }
        return unsafe mosquitto_ssl_get(raw).map { OpaquePointer($0) }
    }

    /// Sends what is waiting; to be called when the socket is writable.
    func write() throws(MosquittoError) {
        try MosquittoError.check(unsafe mosquitto_loop_write(raw, 1))
    }

    /// Pings the broker after a silence, and ends the connection when it did not answer the last ping.
    func tick() throws(MosquittoError) {
        try MosquittoError.check(unsafe mosquitto_loop_misc(raw))
    }

    /// Says DISCONNECT, so that the broker does not publish the will.
    func disconnect() {
        unsafe mosquitto_disconnect(raw)
    }

    /// How many messages have come.
    var messageCount: Int { unsafe context._withUnsafeGuaranteedRef { $0.messageCount } }

    /// How many of them the library has answered, that is: written something.
    var answeredCount: Int { unsafe context._withUnsafeGuaranteedRef { $0.answeredCount } }

    /// What the callbacks told since the last time.
    func takeEvents() -> [BrokerEvent] {
        unsafe context._withUnsafeGuaranteedRef { $0.takeEvents() }
    }
}

extension MosquittoHandle {
    /// Publishes on a secured connection, and gives the packet identifier that will be acknowledged; with QoS 0, that is
    /// by us when it is written.
    func publish(_ packet: PublishPacket, qos: Int32) throws(MosquittoError) -> Int32 {
        let (topic, payload, retained) = (packet.topic, Array(packet.payload), packet.isRetained)
        let count = Int32(payload.count)
        guard version == .v5 else {
            return try published { unsafe mosquitto_publish(raw, &$0, topic, count, payload, qos, retained) }
        }
        return try published { mid in
            unsafe lists.with(packet.properties) { list in
                unsafe mosquitto_publish_v5(raw, &mid, topic, count, payload, qos, retained, list)
            }
        }
    }

    private func published(_ call: (inout Int32) -> Int32) throws(MosquittoError) -> Int32 {
        var mid: Int32 = 0
        try MosquittoError.check(call(&mid))
        return mid
    }

    /// What a subscription is for; MQTT 3.1.1 does not tell them apart.
    enum Interest {
        /// Messages keep the retain flag that they were published with.
        case requests
        /// What is retained already does not come.
        case news
        /// What is retained comes; what we publish ourselves does not.
        case leftovers

        fileprivate var options: mqtt5_sub_options {
            switch self {
            case .requests: MQTT_SUB_OPT_RETAIN_AS_PUBLISHED
            case .news: MQTT_SUB_OPT_SEND_RETAIN_NEVER
            case .leftovers: MQTT_SUB_OPT_NO_LOCAL
            }
        }
    }

    /// Subscribes and gives the packet identifier that its SUBACK will have.
    func subscribe(to filter: String, _ interest: Interest) throws(MosquittoError) -> Int32 {
        let options = version == .v5 ? Int32(interest.options.rawValue) : 0
        // Leftovers can be many: with QoS 1 a broker queues few of them and drops the rest.
        let qos: Int32 = if case .leftovers = interest { 0 } else { 1 }
        var mid: Int32 = 0
        try MosquittoError.check(unsafe mosquitto_subscribe_v5(raw, &mid, filter, qos, options, nil))
        return mid
    }

    func unsubscribe(from filter: String) throws(MosquittoError) {
        try MosquittoError.check(unsafe mosquitto_unsubscribe(raw, nil, filter))
    }

    /// While corked, the kernel gathers small packets into full segments; uncorking sends the rest.
    func setCorked(_ isCorked: Bool) {
        var flag: Int32 = isCorked ? 1 : 0
        unsafe setsockopt(socket, Int32(IPPROTO_TCP), TCP_CORK, &flag, socklen_t(MemoryLayout<Int32>.size))
    }
}

/// The library's own state, set up once and for all.
enum MosquittoLibrary {
    private static let isReady = mosquitto_lib_init() == MOSQ_ERR_SUCCESS.rawValue

    static func use() {
        _ = isReady
    }
}
