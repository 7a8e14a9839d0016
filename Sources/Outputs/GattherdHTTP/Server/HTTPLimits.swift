/// What a server lets its clients have.
public struct HTTPLimits: Hashable, Sendable {
    /// Connections at once; others wait until one ends.
    public var connections = 128
    /// Of those, the most from one address.
    public var connectionsPerAddress = 64
    /// Of those, the most that a stream of events may hold.
    public var eventStreams = 32
    /// Octets of a request's line and headers, together with what the server needs for the answer's.
    public var head = 16_384
    /// Octets of a request's body.
    public var body = 4096
    /// The longest time that the head of a request may take, and its body once more, however busy the client is.
    public var requestTime = Duration.seconds(10)
    /// The longest time that a client may take to read an answer, streams of events apart.
    public var responseTime = Duration.seconds(60)
    /// The longest time between two requests of a connection.
    public var idleTime = Duration.seconds(30)
    /// The longest time without a single octet while one is expected, in whole seconds.
    public var stallTime = Duration.seconds(15)
    /// Octets that may wait for the reader of a stream of events.
    public var eventQueue = 1_048_576

    /// The shortest time between two messages to the readers of events.
    public var eventPeriod = Duration.milliseconds(250)

    public init() {}
}
