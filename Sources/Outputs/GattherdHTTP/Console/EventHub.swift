import GattherdLog
import GattherdModel
import GattherdSync

/// Tells all readers of events what changes, a few times a second: each message is written once for all of them.
///
/// Who does not keep up misses messages, and gets a new snapshot instead.
final class EventHub: Sendable {
    private struct Reader: Sendable {
        let channel: EventChannel
        var hasSnapshot = false
    }

    /// Looks between two messages about the gateway as a whole.
    private static let gatewayPeriod = 4
    /// Looks after which a sign of life is due.
    private static let beatPeriod = 40

    private let board: LiveStatus
    private let backend: any ConsoleBackend
    private let limits: HTTPLimits
    private let dropped: Counter
    private let readers = Locked<[Reader]>([])
    private let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(_ board: LiveStatus, _ backend: any ConsoleBackend, limits: HTTPLimits, dropped: Counter) {
        self.board = board
        self.backend = backend
        self.limits = limits
        self.dropped = dropped
    }

    /// A stream for one more reader; `nil` when there are as many as there may be.
    func subscribe() -> EventChannel? {
        let channel = readers.withLock { readers -> EventChannel? in
            readers.removeAll { $0.channel.isClosed }
            guard readers.count < limits.eventStreams else { return nil }
            let channel = EventChannel(capacity: limits.eventQueue)
            readers.append(Reader(channel: channel))
            return channel
        }
        arrived.yield()
        return channel
    }

    /// Tells until cancelled; while nobody listens nothing is done.
    func run() async {
        for await _ in arrivals {
            var round = 0
            while hasReaders, !Task.isCancelled {
                await tell(round)
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

    private func tell(_ round: Int) async {
        let isGatewayDue = round.isMultiple(of: Self.gatewayPeriod)
        let wantsSnapshot = readers.withLock { $0.contains { !$0.hasSnapshot } }
        let (news, picture) = board.look(wantsPicture: wantsSnapshot)
        if news.hasOtherDevices { beginAnew() }
        let needsStatus = isGatewayDue || picture != nil || !news.devices.isEmpty
        let status = needsStatus ? await backend.status() : nil
        var messages = Self.messages(news, status, board)
        if isGatewayDue, let status { messages.append(EventMessage.gateway(status, now: backend.now)) }
        if messages.isEmpty, round.isMultiple(of: Self.beatPeriod) { messages.append(EventMessage.beat) }
        send(messages)
        if let picture, let status { greet(EventMessage.snapshot(status, picture, now: backend.now)) }
    }

    private static func messages(_ news: LiveStatus.News, _ status: DaemonStatus?, _ board: LiveStatus) -> [[UInt8]] {
        var messages = news.links.map(EventMessage.link)
        if !news.devices.isEmpty, let status {
            let pictures = DeviceSnapshot.all(status, board.picture)
            messages += pictures.filter { news.devices.contains($0.status.device) }.map(EventMessage.device)
        }
        if !news.streams.isEmpty { messages.append(EventMessage.values(news.streams)) }
        return messages + news.events.map(EventMessage.event)
    }

    /// Everybody needs a snapshot.
    private func beginAnew() {
        readers.withLock { readers in
            for index in readers.indices { readers[index].hasSnapshot = false }
        }
    }

    /// To whoever knows what was before.
    private func send(_ messages: [[UInt8]]) {
        guard !messages.isEmpty else { return }
        let all = Array(messages.joined())
        readers.withLock { readers in
            for index in readers.indices where readers[index].hasSnapshot && !readers[index].channel.send(all) {
                readers[index].channel.dropWaiting()
                readers[index].hasSnapshot = false
                dropped.add(UInt64(messages.count))
            }
        }
    }

    /// To whoever does not.
    private func greet(_ snapshot: [UInt8]) {
        readers.withLock { readers in
            for index in readers.indices where !readers[index].hasSnapshot {
                readers[index].hasSnapshot = readers[index].channel.send(snapshot)
            }
        }
    }
}
