/// The limits of a server.
package struct HTTPLimits: Hashable, Sendable {
    /// Simultaneous connections; others wait until one ends.
    package var connections = 128
    /// Simultaneous connections from one address.
    package var connectionsPerAddress = 64
    /// Simultaneous event streams.
    package var eventStreams = 32
    /// Bytes for the request line and headers, and for the headers of the response.
    package var head = 16_384
    /// Bytes of a request body.
    package var body = 4096
    /// The time limit for the head of a request, and again for its body.
    package var requestTime = Duration.seconds(10)
    /// The time limit for reading a response, except event streams.
    package var responseTime = Duration.seconds(60)
    /// The time limit between two requests of a connection.
    package var idleTime = Duration.seconds(30)
    /// The time limit without a single byte while one is expected, in whole seconds.
    package var stallTime = Duration.seconds(15)
    /// Bytes in the queue of an event stream.
    package var eventQueue = 1_048_576

    /// The interval between messages of an event stream.
    package var eventPeriod = Duration.milliseconds(250)

    package init() {}
}
