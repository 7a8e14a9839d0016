import GattherdMachines
import GattherdModel

/// A device, the machines of a download, and what a file would hold of them.
struct RecordBench {
    /// A committed reading.
    struct Stored: Hashable {
        let identity: Int
        let time: Int64
        let doubt: String?
    }

    var device = RecordingDevice()
    var now: Int64 = 1_750_000_000_000_000
    let rule: RecordRule
    var procedure = DownloadDescriptor.Procedure.accessControlPoint(width: 4)
    var hasClock = true
    /// The gateway's clock minus the right time, in microseconds, and one of how many answers is followed by its step.
    var gatewayError: Int64 = 0
    var stepRate = 0
    private var boot = "a"
    /// The correction of the clock of the boot before.
    private var correction: Int64 = 0
    /// One of this number of records is lost by the host; 0 for none.
    var lossRate = 0
    /// True if the host knows of each loss.
    var reportsLosses = false
    /// One of this number of answers is followed by a record that is made and sent meanwhile; 0 for none.
    var liveRate = 0
    /// The number of requests before one during which the device makes a record; negative for none.
    var requestsBeforeRecord = -1
    private(set) var stored: [Stored] = []
    private(set) var notices: [RecordTracker.Notice] = []
    private var state: String?
    private var tracker: RecordTracker
    private var pending: [Stored] = []
    private var random: RecordRandom
    private var requests = 0
    private var payloads = 0
    private var block: DownloadFacts.Block?
    /// The times of all records that were made.
    private(set) var times: [Int: Int64] = [:]
    private var committed: Set<Int> = []
    /// The records that the device has overwritten before they were committed.
    private(set) var overwritten: Set<Int> = []
    /// The records that the device still had after a complete download that has not stored them.
    private var missed: Set<Int> = []
    /// The records that nobody could miss: each attempt of a download lost them, or a link was cut after the loss of
    /// the first record that the device still had.
    private(set) var excused: Set<Int> = []
    private var drops: [Int: Int] = [:]
    private var firstDrops: Set<Int> = []

    init(seed: UInt64 = 1, rule: RecordRule? = nil) {
        var standard = RecordRule(doubt: 9)
        (standard.number, standard.time) = (0, .clock(.init(metric: 1, unit: .seconds(1))))
        self.rule = rule ?? standard
        tracker = RecordTracker(self.rule, boot: boot)
        random = RecordRandom(seed: seed)
    }

    mutating func number(below bound: Int) -> Int { Int.random(in: 0..<max(1, bound), using: &random) }

    /// Lets the device make records, one every `interval` seconds.
    mutating func make(_ count: Int, every interval: Int64 = 60) {
        for _ in 0..<count {
            now += interval * 1_000_000
            // A device without a clock makes records at equal intervals.
            if case .age = rule.time { now -= now % 60_000_000 }
            if let old = device.record(at: now), !committed.contains(old.identity), !missed.contains(old.identity) {
                overwritten.insert(old.identity)
            }
            if let new = device.ring.last { times[new.identity] = new.time }
        }
    }

    /// Lets the device make records that it sends at once.
    mutating func makeLive(_ count: Int, every interval: Int64 = 60) {
        for _ in 0..<count {
            make(1, every: interval)
            if let record = device.ring.last { receive(record) }
        }
    }

    /// Connects, and downloads until the link is cut after this number of records and answers.
    ///
    /// - Returns: The outcome; `nil` if the link was cut.
    @discardableResult
    mutating func connect(cutAfter cut: Int = .max) -> DownloadMachine.Outcome? {
        now += 5_000_000
        (drops, firstDrops) = ([:], [])
        tracker.end()
        if device.isTold {
            device.clockError = gatewayError
            tracker.tell(time)
        } else if hasClock {
            tracker.compare(device: now + device.clockError, gateway: time)
        }
        let outcome = download(cutAfter: cut)
        if outcome == .complete {
            let known = committed.union(pending.map(\.identity))
            excused.formUnion(drops.filter { $0.value > 1 }.keys)
            missed.formUnion(device.ring.map(\.identity).filter { !known.contains($0) && !excused.contains($0) })
        } else {
            excused.formUnion(firstDrops)
        }
        if outcome == nil { tracker.end() } else { commit() }
        return outcome
    }

    /// Makes records, and connects with live records, refusals, cuts and kills.
    mutating func connectWithFaults(cutBelow most: Int) {
        disconnect()
        make(1 + number(below: 12), every: Int64(20 + number(below: 300)))
        makeLive(number(below: 3))
        (liveRate, device.refusals) = (number(below: 3) * 10, number(below: 4))
        connect(cutAfter: number(below: most))
        makeLive(number(below: 3))
        if number(below: 2) == 0 { kill() } else { connect(cutAfter: number(below: most)) }
    }

    /// The gateway's clock, which the tracker follows.
    private var time: Timestamp {
        mutating get {
            tracker.setBase(1_600_000_000_000_000 + gatewayError)
            return Timestamp(microseconds: now + gatewayError)
        }
    }

    private mutating func download(cutAfter cut: Int) -> DownloadMachine.Outcome? {
        let seconds = (now + gatewayError) / 1_000_000
        var machine = DownloadMachine(
            procedure,
            isNumbered: rule.number != nil,
            timeout: .seconds(30),
            clock: { seconds }
        )
        var events: [DownloadMachine.Event] = [.opened(facts)]
        var (left, answer) = (cut, RecordingDevice.Answer())
        while !events.isEmpty {
            for step in machine.handle(events.removeFirst(), at: .zero) {
                switch step {
                case .begin(let request, let relation):
                    tracker.begin(request, relation, at: time)
                    (requests, payloads, block) = (requests + 1, 0, nil)
                case .complete: tracker.complete()
                case .end: tracker.end()
                case .drain: events.append(.drained(facts))
                case .read: receive(block: answer)
                case .finish(let outcome): return outcome
                case .write(let request):
                    if requestsBeforeRecord == 0 { make(1) }
                    requestsBeforeRecord -= 1
                    answer = device.answer(request)
                    guard deliver(answer, &left) else { return nil }
                    if let end = answer.end { events.append(.response(end)) }
                }
            }
        }
        return nil
    }

    private var facts: DownloadFacts {
        var facts = DownloadFacts(tracker)
        (facts.requests, facts.payloads, facts.block) = (requests, payloads, block)
        return facts
    }

    /// Delivers records until the link is cut; returns false if it is.
    private mutating func deliver(_ answer: RecordingDevice.Answer, _ left: inout Int) -> Bool {
        var isFirst = true
        for record in answer.records {
            guard left > 0 else { return false }
            left -= 1
            if lossRate == 0 || answer.end == nil || number(below: lossRate) != 0 {
                receive(record)
                isFirst = false
            } else {
                drops[record.identity, default: 0] += 1
                if isFirst { firstDrops.insert(record.identity) }
                if reportsLosses { tracker.hasLosses = true }
            }
            if liveRate > 0, number(below: liveRate) == 0 { makeLive(1) }
            if stepRate > 0, number(below: stepRate) == 0 { stepClock() }
        }
        guard left > 0 else { return false }
        left -= 1
        if liveRate > 0, number(below: liveRate) == 0 { makeLive(1) }
        return true
    }

    /// Sets the gateway's clock, up to half a year away.
    mutating func stepClock() {
        gatewayError = Int64(number(below: 31_536_000) - 15_768_000) * 1_000_000
        _ = time
    }

    /// Counts a block of records, as the decoder does.
    private mutating func receive(block answer: RecordingDevice.Answer) {
        payloads += 1
        block = DownloadFacts.Block(count: answer.records.count)
        guard case .age = rule.time, let newest = tracker.newest, let first = answer.records.first else { return }
        let later = newest.microseconds - gatewayError + 30_000_000 - first.time
        block?.next = later < 0 ? answer.index : answer.index + later / 60_000_000 + 1
    }

    /// Delivers one record, as a download or a live value does.
    mutating func receive(_ record: RecordingDevice.Record) {
        now += 1000
        var received = ReceivedRecord()
        if rule.number != nil { received.number = record.number }
        switch rule.time {
        case .age: (received.age, received.interval) = ((now - record.time) / 1_000_000 * 1_000_000, 60_000_000)
        case .clock:
            received.reading = device.reading(of: record) * 1_000_000
            if rule.number == nil { received.digest = Int64(record.identity) }
        case .none: received.digest = Int64(record.identity)
        }
        if case .store(let stored, let doubt) = tracker.receive(received, at: time) {
            let time = stored.microseconds - gatewayError
            pending.append(Stored(identity: record.identity, time: time, doubt: doubt))
        }
        if number(below: 3) == 0 { commit() }
    }

    /// Commits readings and cursor in one transaction.
    mutating func commit() {
        stored += pending
        committed.formUnion(pending.map(\.identity))
        pending.removeAll()
        notices += tracker.removeNotices()
        state = tracker.state
    }

    /// Ends the link: records that are made now are not sent.
    mutating func disconnect() { tracker.end() }

    /// Kills the process: what is not committed is lost.
    mutating func kill() {
        pending.removeAll()
        tracker = RecordTracker(rule, restoring: state ?? "", boot: boot, correction: correction)
    }

    /// Starts the gateway anew with a right clock, after its history was corrected.
    mutating func reboot() {
        _ = time
        commit()
        boot += "b"
        (correction, gatewayError) = (-gatewayError, 0)
        tracker = RecordTracker(rule, restoring: state ?? "", boot: boot, correction: correction)
    }

    /// The records that are stored more or less often than once, of all that were made.
    func wrong(except lost: Set<Int> = []) -> [Int: Int] {
        let counts = Dictionary(grouping: stored, by: \.identity).mapValues(\.count)
        let wanted = (0..<device.made).filter { !lost.contains($0) }
        return Dictionary(uniqueKeysWithValues: wanted.map { ($0, counts[$0] ?? 0) }).filter { $0.value != 1 }
    }

    /// The records that are stored more than once.
    var repeated: [Int: Int] { wrong().filter { $0.value > 1 } }

    /// The greatest error of a stored time in seconds, given the right times.
    func greatestError(_ times: [Int: Int64]) -> Double {
        stored.compactMap { stored in times[stored.identity].map { abs(Double(stored.time - $0)) / 1e6 } }.max() ?? 0
    }
}
