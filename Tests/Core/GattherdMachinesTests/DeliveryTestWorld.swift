import GattherdMachines
import GattherdModel

extension JournalReading {
    /// A reading of the device `d`, with the metrics and their values.
    static func test(
        seq: Int64 = 1,
        at time: Timestamp = Timestamp(microseconds: 0),
        device: String = "d",
        stream: String = "s",
        _ values: [(String, SampleValue)] = []
    ) -> JournalReading {
        let metrics = values.map { MetricDescriptor(name: $0.0) }
        let definition = StreamDefinition(device: device, profile: "p", stream: stream, metrics: metrics)
        let samples = values.indices.map { Sample(metric: $0, value: values[$0].1) }
        return JournalReading(seq: seq, stream: definition, time: time, source: .notify, samples: samples[...])
    }
}

/// A journal, a broker and a clock around one machine, in virtual time; every step is explicit.
struct DeliveryTestWorld {
    var machine: DeliveryMachine
    var now = Duration.zero
    /// The journal.
    var committed: [JournalReading] = []
    var stored: Int64 = 0
    /// The newest committed number, of a reading or something else.
    private var head: Int64 = 0
    /// The machine's unanswered requests.
    var questions: [DeliveryMachine.Effect] = []
    /// Readings that the broker received in the current session and has not acknowledged.
    var unacknowledged: [Int64] = []
    var session: Int?
    var receiveMaximum = 65_535
    /// The filter of readings to publish.
    var isWanted: @Sendable (Int64) -> Bool = { _ in true }
    /// The policy of all streams.
    var policy: DeliveryPolicy?
    var filter = DeliveryFilter()
    /// The time for which all streams gather readings.
    var gathering: Duration?
    /// Readings that reached the broker, by session.
    var sessions: [[Int64]] = []
    /// Messages that reached the broker, by session.
    var batches: [[[Int64]]] = []
    var remarks: [DeliveryMachine.Report] = []
    var republished = 0
    var saves = 0
    var isFinished = false

    private let options: DeliveryMachine.Options

    init(_ options: DeliveryMachine.Options = .init(), seed: UInt64 = 1) {
        self.options = options
        machine = DeliveryMachine(options: options, seed: seed)
    }

    /// Returns a world with a session, after `count` readings were committed; none is acknowledged.
    static func connected(committed count: Int = 0, _ options: DeliveryMachine.Options = .init()) -> Self {
        var world = Self(options)
        world.step(.start)
        world.step(.headMoved(0))
        world.answerAll()
        world.commit(count)
        world.answerAll()
        return world
    }

    /// Starts another run with the journal's state, however this one ended.
    mutating func restart() {
        machine = DeliveryMachine(options: options, seed: 1)
        filter = DeliveryFilter()
        (questions, unacknowledged, session, isFinished) = ([], [], nil, false)
        step(.start)
        step(.headMoved(committed.last?.seq ?? 0))
    }

    mutating func commit(_ count: Int, stream: String = "s") {
        for _ in 0..<count {
            let seq = (committed.last?.seq ?? 0) + 1
            committed.append(.test(seq: seq, stream: stream))
        }
        if let head = committed.last?.seq { step(.headMoved(head)) }
    }

    mutating func step(_ event: DeliveryMachine.Event) {
        if case .headMoved(let seq) = event { head = max(head, seq) }
        for effect in machine.handle(event, at: now) { take(effect) }
    }

    private mutating func take(_ effect: DeliveryMachine.Effect) {
        switch effect {
        case .publish(_, let messages, let again):
            let readings = messages.flatMap(\.readings)
            batches[batches.count - 1] += messages.map { $0.readings.map(\.seq) }
            unacknowledged += readings.map(\.seq)
            sessions[sessions.count - 1] += readings.map(\.seq)
            republished += again
        case .report(let remark): remarks.append(remark)
        case .close: session = nil
        case .finish: isFinished = true
        default: questions.append(effect)
        }
    }

    /// Answers the oldest request as a working journal and broker would.
    mutating func answerOne() {
        switch questions.removeFirst() {
        case .loadCursor: step(.cursorLoaded(stored))
        case .fetch(let after, let limit):
            let batch = Array(committed[position(after: after)...].prefix(limit))
            let through = batch.count < limit ? head : batch.last?.seq ?? after
            step(.fetched(batch, through: through, selection(of: batch)))
        case .save(let seq):
            stored = seq
            saves += 1
            step(.saved(seq))
        case .connect(let session): accept(session)
        case .open(let session): step(.opened(session: session))
        case .publishOffline(let session): step(.offlinePublished(session: session))
        default: break
        }
    }

    private mutating func selection(of readings: [JournalReading]) -> DeliverySelection {
        var selection = DeliverySelection(skipped: Set(readings.map(\.seq).filter { !isWanted($0) }))
        let wall = Timestamp(microseconds: 0).advanced(by: now)
        for reading in readings {
            if let gathering { selection.gathered[reading.seq] = gathering }
            if let policy { filter.select(reading, under: policy, into: &selection, wall: wall, at: now) }
        }
        return selection
    }

    private func position(after seq: Int64) -> Int {
        committed.lastIndex { $0.seq <= seq }.map { $0 + 1 } ?? 0
    }

    mutating func answerAll() {
        while !questions.isEmpty { answerOne() }
    }

    mutating func accept(_ session: Int) {
        self.session = session
        unacknowledged = []
        sessions.append([])
        batches.append([])
        step(.connected(session: session, receiveMaximum: receiveMaximum))
    }

    /// Acknowledges everything that the broker has received.
    mutating func acknowledge(_ verdict: PublishOutcome.Verdict = .accepted) {
        let outcomes = unacknowledged.map { PublishOutcome(seq: $0, verdict) }
        unacknowledged = []
        if let session { step(.answered(session: session, outcomes)) }
    }

    /// Answers and acknowledges everything pending, without passing time.
    mutating func passOn() {
        repeat {
            answerAll()
            acknowledge()
        } while !questions.isEmpty || !unacknowledged.isEmpty
    }

    mutating func loseConnection(_ fault: BrokerFault = BrokerFault(.lost, "gone")) {
        guard let session else { return }
        unacknowledged = []
        step(.failed(session: session, fault))
    }

    /// The next deadline of the machine or of a delayed reading.
    var deadline: Duration? {
        [machine.deadline, machine.hasUnfetched ? nil : filter.nextRelease].compactMap(\.self).min()
    }

    /// Advances time to the next deadline.
    mutating func wait() {
        guard let deadline else { return }
        now = max(now, deadline)
        pass()
    }

    /// Advances time by a duration, with all deadlines on the way.
    mutating func wait(_ duration: Duration) {
        let end = now + duration
        while let deadline, deadline <= end {
            wait()
            passOn()
        }
        now = end
    }

    private mutating func pass() {
        let released = machine.hasUnfetched ? [] : filter.release(at: now)
        if !released.isEmpty { step(.released(released)) }
        step(.tick)
    }

    /// Commits a reading with the current time.
    mutating func commit(value: Int64, stream: String = "s") {
        let seq = (committed.last?.seq ?? 0) + 1
        let time = Timestamp(microseconds: 0).advanced(by: now)
        committed.append(.test(seq: seq, at: time, stream: stream, [("v", .integer(value))]))
        step(.headMoved(seq))
    }

    /// Answers, acknowledges and waits until nothing is pending, or `limit` virtual seconds have passed.
    mutating func runUntilIdle(limit: Duration = .seconds(600)) {
        let end = now + limit
        while now < end {
            answerAll()
            acknowledge()
            if questions.isEmpty, unacknowledged.isEmpty {
                guard deadline != nil else { return }
                wait()
            }
        }
    }
}
