public import GattherdMachines
import GattherdSync
import Glibc

/// A visit to the broker that leaves no trace: it connects, is answered, and says goodbye.
public enum BrokerVisit {
    /// Connects with the settings, but by another client id, so that a daemon that runs is not thrown out.
    ///
    /// - Throws: ``BrokerFault`` when there would be no session, or none within `limit`.
    public static func pay(to settings: DeliverySettings, within limit: Duration) async throws(BrokerFault) {
        var settings = settings
        settings.clientID += "-visit-\(getpid())"
        let (answers, answer) = AsyncStream.makeStream(
            of: Result<Void, BrokerFault>.self,
            bufferingPolicy: .bufferingOldest(1)
        )
        let deadline = ContinuousClock.now + limit
        _ = NamedThread(name: "mqtt-visit") { [settings] in
            answer.yield(Result { () throws(BrokerFault) in try visit(settings, until: deadline) })
        }
        // Looking up a host's name may take longer than there is time.
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

    private static func visit(
        _ settings: DeliverySettings,
        until deadline: ContinuousClock.Instant
    ) throws(BrokerFault) {
        let client = try BrokerClient.dial(settings, will: nil, first: 0)
        while ContinuousClock.now < deadline {
            do throws(MosquittoError) {
                try wait(for: client)
            } catch {
                try look(at: client)
                throw .unanswered(settings, error, client.handle.complaint)
            }
            guard try !look(at: client) else { return client.handle.disconnect() }
        }
        throw .unreachable(settings, "no answer in time")
    }

    /// Lets the library work when its socket is ready, or after a moment.
    private static func wait(for client: BrokerClient) throws(MosquittoError) {
        let events = client.handle.wantsToWrite ? POLLIN | POLLOUT : POLLIN
        var socket = pollfd(fd: client.handle.socket, events: Int16(events), revents: 0)
        guard unsafe poll(&socket, 1, 100) > 0 else { return }
        if socket.revents & ~Int16(POLLOUT) != 0 { try client.handle.read() }
        if socket.revents & Int16(POLLOUT) != 0 { try client.handle.write() }
    }

    /// True once the broker has taken us.
    @discardableResult
    private static func look(at client: BrokerClient) throws(BrokerFault) -> Bool {
        for case .connected(let reason, let limits) in client.handle.takeEvents() {
            guard reason == 0 else { throw BrokerReason(code: reason).refusal }
            guard limits.takesQoS1 else { throw .withoutQoS1 }
            return true
        }
        return false
    }
}
