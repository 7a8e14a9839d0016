import GattherdLog
import GattherdModel
import GattherdSync

/// Sends changes to all readers of the event stream, some times a second.
///
/// Each message is encoded once.
///
/// Slow readers skip messages and then receive a new snapshot.
final class EventHub: Sendable {
    private struct Reader: Sendable {
        let channel: EventChannel
        /// False once the token of the reader's request was replaced.
        let isAllowed: @Sendable () -> Bool
        var hasSnapshot = false
    }

    /// Rounds between two messages about the whole gateway.
    private static let gatewayPeriod = 4
    /// The number of rounds without a message after which a keep-alive is sent.
    private static let keepAlivePeriod = 40

    private let live: LiveStatus
    private let backend: any HTTPBackend
    private let limits: HTTPLimits
    private let dropped: Counter
    private let readers = Locked<[Reader]>([])
    /// The start of the daemon in the last status; it changes with a step of the wall clock.
    private let started = Locked<String?>(nil)
    private let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(_ live: LiveStatus, _ backend: any HTTPBackend, limits: HTTPLimits, dropped: Counter) {
        self.live = live
        self.backend = backend
        self.limits = limits
        self.dropped = dropped
    }

    /// Adds a reader.
    ///
    /// - Parameter isAllowed: True as long as the reader may read; checked some times a second.
    /// - Returns: The channel of the reader; `nil` if the limit is reached.
    func subscribe(while isAllowed: @escaping @Sendable () -> Bool = { true }) -> EventChannel? {
        let channel = readers.withLock { readers -> EventChannel? in
            readers.removeAll { $0.channel.isClosed }
            guard readers.count < limits.eventStreams else { return nil }
            let channel = EventChannel(capacity: limits.eventQueue)
            readers.append(Reader(channel: channel, isAllowed: isAllowed))
            return channel
        }
        arrived.yield()
        return channel
    }

    /// Sends changes until cancelled; idle without readers.
    func run() async {
        for await _ in arrivals {
            var round = 0
            while hasReaders, !Task.isCancelled {
                closeForbidden()
                await publish(round)
                round += 1
                try? await Task.sleep(for: limits.eventPeriod, clock: .loop)
            }
        }
    }

    private var hasReaders: Bool {
        readers.withLock { readers in
            readers.removeAll { $0.channel.isClosed }
            return !readers.isEmpty
        }
    }

    /// Closes the streams of readers that may read no more; messages that wait for them are not sent.
    private func closeForbidden() {
        readers.withLock { readers in
            for reader in readers where !reader.isAllowed() {
                reader.channel.dropQueued()
                reader.channel.close()
            }
            readers.removeAll { $0.channel.isClosed }
        }
    }

    private func publish(_ round: Int) async {
        let isGatewayDue = round.isMultiple(of: Self.gatewayPeriod)
        let wantsSnapshot = readers.withLock { $0.contains { !$0.hasSnapshot } }
        let (changes, snapshot) = live.drainChanges(wantsSnapshot: wantsSnapshot)
        if changes.hasOtherDevices { invalidateSnapshots() }
        let needsStatus = isGatewayDue || snapshot != nil || !changes.devices.isEmpty
        let status = needsStatus ? await backend.status() : nil
        if let status, hasStepped(status) { invalidateSnapshots() }
        var messages = Self.messages(changes, status, live)
        if isGatewayDue, let status { messages.append(EventMessage.gateway(status, now: backend.now)) }
        if messages.isEmpty, round.isMultiple(of: Self.keepAlivePeriod) { messages.append(EventMessage.keepAlive) }
        send(messages)
        if let snapshot, let status { sendSnapshot(EventMessage.snapshot(status, snapshot, now: backend.now)) }
    }

    /// Returns true if the wall clock was set since the last status, which changes the times of all states.
    private func hasStepped(_ status: DaemonStatus) -> Bool {
        started.withLock { started in
            defer { started = status.started }
            return started.map { $0 != status.started } ?? false
        }
    }

    private static func messages(
        _ changes: LiveStatus.Changes,
        _ status: DaemonStatus?,
        _ live: LiveStatus
    ) -> [[UInt8]] {
        var messages = changes.links.map(EventMessage.link)
        if !changes.devices.isEmpty, let status {
            let snapshots = DeviceSnapshot.all(status, live.snapshot)
            messages += snapshots.filter { changes.devices.contains($0.status.device) }.map(EventMessage.device)
        }
        if !changes.streams.isEmpty { messages.append(EventMessage.values(changes.streams, changes.descriptions)) }
        return messages + changes.events.map(EventMessage.event)
    }

    /// Marks all readers as needing a snapshot.
    private func invalidateSnapshots() {
        readers.withLock { readers in
            for index in readers.indices { readers[index].hasSnapshot = false }
        }
    }

    /// Sends changes to the readers that have a snapshot.
    private func send(_ messages: [[UInt8]]) {
        guard !messages.isEmpty else { return }
        let all = Array(messages.joined())
        readers.withLock { readers in
            for index in readers.indices where readers[index].hasSnapshot && !readers[index].channel.send(all) {
                readers[index].channel.dropQueued()
                readers[index].hasSnapshot = false
                dropped.add(UInt64(messages.count))
            }
        }
    }

    /// Sends a snapshot to the readers that need one.
    private func sendSnapshot(_ snapshot: [UInt8]) {
        readers.withLock { readers in
            for index in readers.indices where !readers[index].hasSnapshot {
                readers[index].hasSnapshot = readers[index].channel.send(snapshot)
            }
        }
    }
}
