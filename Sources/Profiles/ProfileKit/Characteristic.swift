import CGattherdProfile
public import GattherdGATT

/// How values of a characteristic are asked for.
public enum Subscription: Hashable, Sendable {
    case none
    case notify
    case indicate
    /// Read again and again, with this pause between two reads: 100 ms to a day.
    case poll(every: Duration)
}

/// What else is to be known about a characteristic.
public struct CharacteristicOptions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Read once after each connect, before the link is ready.
    public static let readAtConnect = Self(rawValue: GATTHERD_READ_AT_CONNECT)
    /// A device without the characteristic cannot be served.
    public static let required = Self(rawValue: GATTHERD_REQUIRED)
    /// Take notifications from a socket of our own: cheap, but a stall loses some.
    public static let prefersSocket = Self(rawValue: GATTHERD_PREFERS_SOCKET)
}

/// One characteristic that a profile decodes, and the stream that its readings go to.
public struct Characteristic<Profile: NativeProfile>: Sendable {
    let uuid: BluetoothUUID
    let service: BluetoothUUID?
    let stream: String
    let metrics: [Metric]
    let subscription: Subscription
    let options: CharacteristicOptions
    let silence: Duration?
    let pollInstead: Duration?
    let decode: @Sendable (inout Profile, inout PayloadCursor, SampleSink) throws(PayloadError) -> Void

    /// A characteristic each of whose payloads speaks for itself.
    ///
    /// - Parameters:
    ///   - uuid: Which characteristic.
    ///   - service: The service that it must be part of; `nil` for any of the profile's.
    ///   - stream: The stream's name, `snake_case`.
    ///   - subscription: How values are asked for.
    ///   - options: What else is to be known.
    ///   - silence: The longest silence of a subscribed stream before the link is probed.
    ///   - pollInstead: How often it is read where it can neither notify nor indicate.
    ///   - decode: Reads the payload and gives its samples; what it throws is the reason of the reject.
    public init<Metrics: MetricSet>(
        _ uuid: BluetoothUUID,
        in service: BluetoothUUID? = nil,
        stream: String,
        subscribe subscription: Subscription = .none,
        _ options: CharacteristicOptions = [],
        silence: Duration? = nil,
        pollInstead: Duration? = nil,
        decode: @escaping @Sendable (inout PayloadCursor, Samples<Metrics>) throws(PayloadError) -> Void
    ) {
        self.init(
            uuid,
            in: service,
            stream: stream,
            subscribe: subscription,
            options,
            silence: silence,
            pollInstead: pollInstead
        ) { (_, payload, samples) throws(PayloadError) in
            try decode(&payload, samples)
        }
    }

    /// A characteristic whose payloads are read in the light of what came before on the same connection.
    ///
    /// - Parameters:
    ///   - uuid: Which characteristic.
    ///   - service: The service that it must be part of; `nil` for any of the profile's.
    ///   - stream: The stream's name, `snake_case`.
    ///   - subscription: How values are asked for.
    ///   - options: What else is to be known.
    ///   - silence: The longest silence of a subscribed stream before the link is probed.
    ///   - pollInstead: How often it is read where it can neither notify nor indicate.
    ///   - decode: As in the other initializer, with the profile's instance first.
    public init<Metrics: MetricSet>(
        _ uuid: BluetoothUUID,
        in service: BluetoothUUID? = nil,
        stream: String,
        subscribe subscription: Subscription = .none,
        _ options: CharacteristicOptions = [],
        silence: Duration? = nil,
        pollInstead: Duration? = nil,
        decode: @escaping @Sendable (inout Profile, inout PayloadCursor, Samples<Metrics>) throws(PayloadError) -> Void
    ) {
        self.uuid = uuid
        self.service = service
        self.stream = stream
        self.subscription = subscription
        self.options = options
        self.silence = silence
        self.pollInstead = pollInstead
        metrics = Metrics.allCases.map(\.metric)
        self.decode = { (profile, payload, sink) throws(PayloadError) in
            try decode(&profile, &payload, Samples<Metrics>(sink))
        }
    }
}
