import GattherdMQTT
import GattherdMachines
import GattherdModel
import Testing

@testable import GattherdSparkplug

/// A machine in virtual time, with a journal of readings and a broker that accepts everything.
///
/// The bench performs effects that need no decision of the test: it loads, fetches and saves.
struct MachineBench {
    static let topics = SparkplugTopics(group: "plant", node: "lab", primaryHost: "scada")

    private(set) var machine: SparkplugMachine
    private(set) var now = Duration.zero
    /// Published messages of all sessions, deaths at the end of a session included.
    private(set) var messages: [SparkplugMessage] = []
    /// The wills of all connections.
    private(set) var wills: [SparkplugMessage] = []
    private(set) var controls: [ControlRequest] = []
    private(set) var reports: [SparkplugMachine.Report] = []
    /// The number of pings that wait for an answer.
    private(set) var pings = 0
    private(set) var saved: [Int64] = []
    private(set) var isFinished = false
    private var session = 0
    var readings: [JournalReading] = []
    var isJournalBroken = false
    /// True to keep the journal's answers in ``lateAnswers``.
    var isJournalSlow = false
    private(set) var lateAnswers: [SparkplugMachine.Event] = []
    /// True to leave connections without an answer.
    var isBrokerDead = false

    init(
        host: Bool = false,
        bdSeq: UInt8? = nil,
        isByException: Bool = false,
        permissions: ControlPermissions = ControlPermissions(),
        options: SparkplugMachine.Options = SparkplugMachine.Options(),
        backlog: [JournalReading] = []
    ) {
        let node = EdgeNode(
            topics: Self.topics,
            version: "1.2.3",
            isByException: isByException,
            permissions: permissions
        )
        machine = SparkplugMachine(node, waitsForHost: host, options: options, seed: 1)
        self.bdSeq = bdSeq
        readings = backlog
        send(.headMoved(Int64(backlog.count)))
        send(.start)
    }

    private let bdSeq: UInt8?
    /// The time of day, which starts at 1000 s.
    var time: Timestamp { Timestamp(microseconds: 1_000_000_000).advanced(by: now) }

    mutating func send(_ event: SparkplugMachine.Event) {
        var events = [event]
        while !events.isEmpty {
            for effect in machine.handle(events.removeFirst(), at: now, time) { events += perform(effect) }
        }
    }

    /// Moves the clock, and sends ticks at all deadlines on the way.
    mutating func wait(_ duration: Duration) {
        let end = now + duration
        while let deadline = machine.deadline, deadline <= end {
            now = max(now, deadline)
            send(.tick)
            guard machine.deadline != deadline else {
                Issue.record("the deadline \(deadline) does not move: a busy loop")
                break
            }
        }
        now = end
        send(.tick)
    }

    private mutating func perform(_ effect: SparkplugMachine.Effect) -> [SparkplugMachine.Event] {
        switch effect {
        case .load: return isJournalBroken ? [.journalFailed(.load)] : [.loaded(cursor: 0, bdSeq: bdSeq)]
        case .fetch(let after, let limit):
            if isJournalBroken { return [.journalFailed(.fetch)] }
            let batch = readings.filter { $0.seq > after }.prefix(limit)
            let through = batch.last?.seq ?? after
            let answer = SparkplugMachine.Event.fetched(
                JournalBatch(batch.map { .reading($0) }, through: through),
                after: after
            )
            guard isJournalSlow else { return [answer] }
            lateAnswers.append(answer)
        case .save(let seq):
            if isJournalBroken { return [.journalFailed(.save)] }
            saved.append(seq)
            return [.saved(seq)]
        case .connect(let number, _, let will):
            session = number
            wills.append(will)
            return isBrokerDead ? [] : [.connected(session: number)]
        case .publish(_, let batch): messages += batch
        case .ping: pings += 1
        case .set(let request): controls.append(request)
        case .close(_, let death):
            messages += death.map { [$0] } ?? []
            pings = 0
        case .report(let report): reports.append(report)
        case .finish: isFinished = true
        }
        return []
    }
}

/// Events around the machine.
extension MachineBench {
    /// Commits a reading.
    mutating func commit(_ stream: StreamDefinition, _ values: SampleValue..., at second: Int64 = 1000) {
        let seq = Int64(readings.count + 1)
        readings.append(.of(stream, values, seq: seq, at: second))
        send(.headMoved(seq))
    }

    /// Sends the journal's answers, the oldest first.
    mutating func answerFetches() {
        isJournalSlow = false
        while !lateAnswers.isEmpty { send(lateAnswers.removeFirst()) }
    }

    mutating func answerPing() {
        guard pings > 0 else { return }
        pings -= 1
        send(.confirmed(session: session))
    }

    mutating func connect(_ device: DeviceDescription) {
        send(.described(device))
        send(.link(device: device.device, isOnline: true))
    }

    mutating func lose(_ detail: String = "gone") {
        send(.failed(session: session, BrokerFault(.lost, detail)))
    }

    mutating func receive(_ topic: String, _ payload: [UInt8], isRetained: Bool = false) {
        let message = BrokerMessage(topic: topic, payload: payload, length: payload.count, isRetained: isRetained)
        send(.message(session: session, message))
    }

    mutating func command(_ topic: String, _ metrics: SparkplugMetric...) {
        receive(topic, SparkplugPayload(timestamp: 1, metrics: metrics).encoded)
    }

    mutating func requestRebirth() {
        command(Self.topics.nodeCommand, SparkplugMetric(name: "Node Control/Rebirth", value: .boolean(true)))
    }

    mutating func hostState(_ json: String) {
        receive("spBv1.0/STATE/scada", Array(json.utf8))
    }

    mutating func hostIsOnline(_ isOnline: Bool, at timestamp: Int) {
        hostState("{\"online\": \(isOnline), \"timestamp\": \(timestamp)}")
    }

    /// The types of the published messages, for example `DDATA`.
    var types: [String] { messages.map(\.type) }

    /// The messages of a type.
    func messages(_ type: String) -> [SparkplugMessage] { messages.filter { $0.type == type } }

    mutating func forgetMessages() {
        messages.removeAll()
    }
}

extension SparkplugMessage {
    var seq: UInt64? { payload.seq }

    func metric(_ name: String) -> SparkplugMetric? { payload.metrics.first { $0.name == name } }
}
