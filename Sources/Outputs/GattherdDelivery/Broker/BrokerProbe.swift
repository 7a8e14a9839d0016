import GattherdMQTT
public import GattherdMachines
import GattherdSync
import Glibc

/// Connects to the broker as a test, waits for CONNACK and disconnects; nothing is published.
public enum BrokerProbe {
    /// The longest wait for the socket in milliseconds, after which the deadline is checked.
    private static let pollInterval: Int32 = 100

    /// Connects with the settings under another client id, so that a running daemon stays connected.
    ///
    /// - Throws: ``BrokerFault`` if the broker refuses the session or does not answer within `limit`.
    public static func connect(with settings: DeliverySettings, within limit: Duration) async throws(BrokerFault) {
        var settings = settings
        settings.clientID += "-probe-\(getpid())"
        let (answers, answer) = AsyncStream.makeStream(
            of: Result<Void, BrokerFault>.self,
            bufferingPolicy: .bufferingOldest(1)
        )
        let deadline = ContinuousClock.now + limit
        _ = NamedThread(name: "mqtt-probe") { [settings] in
            answer.yield(Result { () throws(BrokerFault) in try probe(settings, until: deadline) })
        }
        // Resolving the host name may take longer than `limit`.
        async let _ = giveUp(settings, at: deadline, answer)
        for await result in answers { return try result.get() }
    }

    private static func giveUp(
        _ settings: DeliverySettings,
        at deadline: ContinuousClock.Instant,
        _ answer: AsyncStream<Result<Void, BrokerFault>>.Continuation
    ) async {
        try? await Task.sleep(until: deadline)
        answer.yield(.failure(.unreachable(settings, "no answer in time")))
    }

    private static func probe(
        _ settings: DeliverySettings,
        until deadline: ContinuousClock.Instant
    ) throws(BrokerFault) {
        let dial = try settings.dial(first: 0)
        let origin = ContinuousClock.now
        let connection = try dial.connection(settings, will: nil, at: .zero)
        while ContinuousClock.now < deadline {
            do throws(MQTTConnectionError) {
                try wait(for: connection, since: origin)
            } catch {
                if try isAccepted(by: connection) { return }
                throw .unanswered(settings, error, connection.tls?.explanation)
            }
            if try isAccepted(by: connection) { return connection.disconnect(at: ContinuousClock.now - origin) }
        }
        throw .unreachable(settings, "no answer in time")
    }

    /// Waits until the socket is ready, then sends and receives.
    private static func wait(
        for connection: MQTTConnection,
        since origin: ContinuousClock.Instant
    ) throws(MQTTConnectionError) {
        try connection.flush(at: ContinuousClock.now - origin)
        let events = connection.interest.contains(.writable) ? POLLIN | POLLOUT : POLLIN
        var socket = pollfd(fd: connection.descriptor, events: Int16(events), revents: 0)
        guard unsafe poll(&socket, 1, pollInterval) > 0 else { return }
        if socket.revents & ~Int16(POLLOUT) != 0 { try connection.receive(at: ContinuousClock.now - origin) }
    }

    /// True if the broker has accepted the connection.
    private static func isAccepted(by connection: MQTTConnection) throws(BrokerFault) -> Bool {
        for case .connected(let reason, let text, let limits) in connection.drainEvents() {
            guard reason == .success else { throw reason.refusal(text) }
            guard limits.takesQoS1 else { throw .withoutQoS1 }
            return true
        }
        return false
    }
}
