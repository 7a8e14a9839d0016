import GattherdMachines
import GattherdModel

/// A generator of repeatable random numbers.
struct RecordRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state &* 0x2545_F491_4F6C_DD1D
    }
}

/// A device with a ring of stored records and a Record Access Control Point, in virtual time.
struct RecordingDevice {
    struct Record: Hashable {
        /// The identity that the test knows.
        let identity: Int
        let number: Int64
        /// The device's clock, in whole seconds.
        let reading: Int64
        /// The right time in microseconds.
        let time: Int64
    }

    var ring: [Record] = []
    var capacity = Int.max
    var numberBits: Int64 = 32
    var nextNumber: Int64 = 0
    /// The device's clock minus the right time, in microseconds.
    var clockError: Int64 = 0
    var isNewestFirst = false
    /// True if it knows the operator "within range of".
    var hasRanges = true
    private var identity = 0

    /// Makes a record; returns the one that it overwrites.
    @discardableResult
    mutating func record(at time: Int64) -> Record? {
        ring.append(
            Record(identity: identity, number: nextNumber, reading: (time + clockError) / 1_000_000, time: time)
        )
        identity += 1
        nextNumber = (nextNumber + 1) % (1 << numberBits)
        return ring.count > capacity ? ring.removeFirst() : nil
    }

    var made: Int { identity }

    /// Loses all records and starts to count anew.
    mutating func reset() {
        ring.removeAll()
        nextNumber = 0
    }

    /// Returns the records of a request, or `nil` for another operation, and the answer.
    func answer(_ request: [UInt8]) -> (records: [Record], answer: [UInt8]) {
        let operands = request.dropFirst(3)
        let number = { (octets: ArraySlice<UInt8>) in octets.reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) } }
        let chosen: [Record]
        switch request.dropFirst().first {
        case 3: chosen = ring.filter { $0.number >= number(operands) }
        case 4 where !hasRanges: return ([], [6, 0, request.first ?? 0, 4])
        case 4:
            let (least, most) = (operands.prefix(operands.count / 2), operands.suffix(operands.count / 2))
            chosen = ring.filter { $0.number >= number(least) && $0.number <= number(most) }
        default: chosen = ring
        }
        let count = UInt32(chosen.count)
        switch request.first {
        case 4: return ([], [5, 0] + (0..<4).map { UInt8(truncatingIfNeeded: count >> UInt32(8 * $0)) })
        case 1:
            return (isNewestFirst ? chosen.reversed() : chosen, [6, 0, 1, chosen.isEmpty ? 6 : 1])
        default: return ([], [6, 0, request.first ?? 0, 1])
        }
    }
}

/// A device, the machines of a download, and the state that a file would hold.
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
    var hasClock = true
    /// One of this number of records is lost by the host; 0 for none.
    var lossRate = 0
    private(set) var stored: [Stored] = []
    private(set) var notices: [RecordTracker.Notice] = []
    private var state: String?
    private var tracker: RecordTracker
    private var pending: [Stored] = []
    private var random: RecordRandom

    init(seed: UInt64 = 1, rule: RecordRule? = nil) {
        var standard = RecordRule(doubt: 9)
        (standard.number, standard.time) = (0, .clock(.init(metric: 1, unit: .seconds(1))))
        self.rule = rule ?? standard
        tracker = RecordTracker(self.rule)
        random = RecordRandom(seed: seed)
    }

    mutating func number(below bound: Int) -> Int { Int.random(in: 0..<max(1, bound), using: &random) }

    /// Lets the device make records, one every `interval` seconds.
    mutating func make(_ count: Int, every interval: Int64 = 60) {
        for _ in 0..<count {
            now += interval * 1_000_000
            if let old = device.record(at: now), !committed.contains(old.identity) { overwritten.insert(old.identity) }
        }
    }

    /// The committed records.
    private var committed: Set<Int> = []
    /// The records that the device has overwritten before they were committed.
    private(set) var overwritten: Set<Int> = []

    /// Connects, and downloads until the link is cut after this number of records and answers.
    ///
    /// - Returns: The outcome; `nil` if the link was cut.
    @discardableResult
    mutating func connect(cutAfter cut: Int = .max) -> DownloadMachine.Outcome? {
        now += 5_000_000
        tracker.setLive(false)
        if hasClock { tracker.compare(device: now + device.clockError, gateway: Timestamp(microseconds: now)) }
        let seconds = now / 1_000_000
        var machine = DownloadMachine(
            .accessControlPoint(width: Int(device.numberBits / 8)),
            timeout: .seconds(30),
            clock: { seconds }
        )
        var events: [DownloadMachine.Event] = [.opened(DownloadFacts(tracker))]
        var left = cut
        defer { tracker.setLive(false) }
        while !events.isEmpty {
            for step in machine.handle(events.removeFirst(), at: .zero) {
                switch step {
                case .begin(let request): tracker.begin(request)
                case .complete: tracker.complete()
                case .drain: events.append(.drained(DownloadFacts(tracker)))
                case .read: break
                case .finish(let outcome):
                    commit()
                    return outcome
                case .write(let request):
                    let (records, answer) = device.answer(request)
                    for record in records {
                        guard left > 0 else { return nil }
                        left -= 1
                        if lossRate == 0 || number(below: lossRate) != 0 { receive(record) }
                    }
                    guard left > 0 else { return nil }
                    left -= 1
                    events.append(.response(answer))
                }
            }
        }
        return nil
    }

    /// Delivers one record, as a download or a live value does.
    mutating func receive(_ record: RecordingDevice.Record) {
        now += 1000
        let received = ReceivedRecord(number: record.number, reading: record.reading * 1_000_000)
        if case .store(let time, let doubt) = tracker.receive(received, at: Timestamp(microseconds: now)) {
            pending.append(Stored(identity: record.identity, time: time.microseconds, doubt: doubt))
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

    /// Kills the process: uncommitted state is lost.
    mutating func kill() {
        pending.removeAll()
        tracker = state.map { RecordTracker(rule, restoring: $0) } ?? RecordTracker(rule)
    }

    /// The records that are stored more or less often than once, of all that were made.
    func wrong(except lost: Set<Int> = []) -> [Int: Int] {
        let counts = Dictionary(grouping: stored, by: \.identity).mapValues(\.count)
        let wanted = (0..<device.made).filter { !lost.contains($0) }
        return Dictionary(uniqueKeysWithValues: wanted.map { ($0, counts[$0] ?? 0) }).filter { $0.value != 1 }
    }

    /// The greatest error of a stored time in seconds, given the right times.
    func greatestError(_ times: [Int: Int64]) -> Double {
        stored.compactMap { stored in times[stored.identity].map { abs(Double(stored.time - $0)) / 1e6 } }.max() ?? 0
    }
}
