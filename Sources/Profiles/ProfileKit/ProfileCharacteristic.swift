import CGattherdProfile
public import GattherdGATT

/// The way to obtain values of a characteristic.
public enum Subscription: Hashable, Sendable {
    case none
    case notify
    case indicate
    /// Polled with this period, from 100 ms to a day.
    case poll(every: Duration)
}

/// Options of a characteristic.
public struct CharacteristicOptions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Read once after each connect, before the link is ready.
    public static let readAtConnect = Self(rawValue: GATTHERD_READ_AT_CONNECT)
    /// Devices without this characteristic fail.
    public static let required = Self(rawValue: GATTHERD_REQUIRED)
    /// Notifications arrive by AcquireNotify instead of D-Bus signals: cheap, but a stall loses values.
    public static let prefersSocket = Self(rawValue: GATTHERD_PREFERS_SOCKET)
}

/// The decoder of a stream.
typealias StreamDecoder<Profile> =
    @Sendable (
        inout Profile, inout PayloadCursor, SampleSink
    ) throws(PayloadError) -> Void

/// A characteristic that a profile decodes, and the stream of its readings.
public struct ProfileCharacteristic<Profile: NativeProfile>: Sendable {
    let uuid: BluetoothUUID
    let service: BluetoothUUID?
    let stream: String
    let metrics: [Metric]
    let subscription: Subscription
    let options: CharacteristicOptions
    let silence: Duration?
    let pollInstead: Duration?
    let tests: [DecodingTest]
    let decode: StreamDecoder<Profile>

    /// Creates a characteristic with a stateless decoder.
    ///
    /// - Parameters:
    ///   - uuid: The characteristic's UUID.
    ///   - service: The service that contains it; `nil` for any service of the profile.
    ///   - stream: The stream's name, `snake_case`.
    ///   - subscription: The way to obtain values.
    ///   - options: Options such as ``CharacteristicOptions/required``.
    ///   - silence: The longest silence of a subscribed stream before the link is probed.
    ///   - pollInstead: The polling period if it can neither notify nor indicate.
    ///   - tests: Tests for `gattherd profile test`, at most 64.
    ///   - decode: Decodes a payload and emits its samples; a thrown error rejects the payload.
    public init<Metrics: MetricSet>(
        _ uuid: BluetoothUUID,
        in service: BluetoothUUID? = nil,
        stream: String,
        subscribe subscription: Subscription = .none,
        _ options: CharacteristicOptions = [],
        silence: Duration? = nil,
        pollInstead: Duration? = nil,
        tests: [DecodingTest] = [],
        decode: @escaping @Sendable (inout PayloadCursor, Samples<Metrics>) throws(PayloadError) -> Void
    ) {
        self.init(
            uuid,
            in: service,
            stream: stream,
            subscribe: subscription,
            options,
            silence: silence,
            pollInstead: pollInstead,
            tests: tests
        ) { (_, payload, samples) throws(PayloadError) in
            try decode(&payload, samples)
        }
    }

    /// Creates a characteristic whose decoder uses the state of the connection.
    ///
    /// - Parameters:
    ///   - uuid: The characteristic's UUID.
    ///   - service: The service that contains it; `nil` for any service of the profile.
    ///   - stream: The stream's name, `snake_case`.
    ///   - subscription: The way to obtain values.
    ///   - options: Options such as ``CharacteristicOptions/required``.
    ///   - silence: The longest silence of a subscribed stream before the link is probed.
    ///   - pollInstead: The polling period if it can neither notify nor indicate.
    ///   - tests: Tests for `gattherd profile test`, at most 64.
    ///   - decode: As in the other initializer, with the profile's instance as first argument.
    public init<Metrics: MetricSet>(
        _ uuid: BluetoothUUID,
        in service: BluetoothUUID? = nil,
        stream: String,
        subscribe subscription: Subscription = .none,
        _ options: CharacteristicOptions = [],
        silence: Duration? = nil,
        pollInstead: Duration? = nil,
        tests: [DecodingTest] = [],
        decode: @escaping @Sendable (inout Profile, inout PayloadCursor, Samples<Metrics>) throws(PayloadError) -> Void
    ) {
        self.uuid = uuid
        self.service = service
        self.stream = stream
        self.subscription = subscription
        self.options = options
        self.silence = silence
        self.pollInstead = pollInstead
        self.tests = tests
        metrics = Metrics.allCases.map(\.metric)
        self.decode = { (profile, payload, sink) throws(PayloadError) in
            try decode(&profile, &payload, Samples<Metrics>(sink))
        }
    }
}

extension ProfileCharacteristic {
    func table(in memory: inout TableMemory) -> UnsafePointer<gattherd_characteristic>? {
        let metrics = unsafe metrics.map { unsafe $0.table(in: &memory) }
        let tests = unsafe tests.map { unsafe memory.text($0.text) }
        return unsafe memory.value(
            gattherd_characteristic(
                struct_size: UInt32(MemoryLayout<gattherd_characteristic>.size),
                subscription: subscription.number,
                flags: options.rawValue,
                metric_count: UInt32(metrics.count),
                uuid: memory.text(uuid.canonical),
                service: memory.text(service?.canonical),
                stream: memory.text(stream),
                metrics: memory.array(metrics),
                poll_milliseconds: subscription.pause?.milliseconds ?? 0,
                silence_milliseconds: silence?.milliseconds ?? 0,
                poll_instead_milliseconds: pollInstead?.milliseconds ?? 0,
                test_count: UInt32(tests.count),
                reserved: 0,
                tests: memory.array(tests)
            )
        )
    }
}

extension Subscription {
    fileprivate var number: UInt32 {
        switch self {
        case .none: GATTHERD_SUBSCRIBE_NONE
        case .notify: GATTHERD_SUBSCRIBE_NOTIFY
        case .indicate: GATTHERD_SUBSCRIBE_INDICATE
        case .poll: GATTHERD_SUBSCRIBE_POLL
        }
    }

    fileprivate var pause: Duration? {
        guard case .poll(let pause) = self else { return nil }
        return pause
    }
}
