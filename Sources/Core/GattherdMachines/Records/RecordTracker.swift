public import GattherdModel

/// A stored record as a device sends it.
public struct ReceivedRecord: Hashable, Sendable {
    /// The record's number; `nil` if the device does not number records.
    public var number: Int64?
    /// The device's clock when it made the record, in microseconds; `nil` if the record has no such time.
    public var reading: Int64?
    /// The record's age in microseconds, if the device sends that.
    public var age: Int64?
    /// The time to the next record of an unnumbered series, in microseconds.
    public var interval: Int64?
    /// A digest of the contents.
    public var digest: Int64

    public init(
        number: Int64? = nil,
        reading: Int64? = nil,
        age: Int64? = nil,
        interval: Int64? = nil,
        digest: Int64 = 0
    ) {
        (self.number, self.reading, self.age) = (number, reading, age)
        (self.interval, self.digest) = (interval, digest)
    }
}

/// The records that a download requests.
public enum RecordRequest: Hashable, Sendable {
    case all
    /// All records, because the device has none with the number of the newest stored one.
    case allAfterNone
    /// The records from the newest stored one on; that one is requested again to recognise a device that was reset.
    case from(Int64)
    /// The same up to a number: after the numbers have wrapped, the device may still have higher ones from before.
    case within(ClosedRange<Int64>)

    /// The lowest requested number.
    var lowest: Int64 {
        switch self {
        case .all, .allAfterNone: 0
        case .from(let number): number
        case .within(let range): range.lowerBound
        }
    }
}

/// Decides which received records are new, when they were made, and from where a download continues.
///
/// A record has a number, which only grows until the device is reset. Numbers that wrap are continued beyond their
/// field. Numbers restart when the newest stored record is gone or has other contents, or when a lower number has a
/// later time. The state is a value that is committed together with the readings it covers.
public struct RecordTracker: Hashable, Sendable {
    /// A record as a point in the series.
    struct Mark: Hashable, Sendable {
        var number: Int64
        /// The device's own time of the record, or a digest of the record.
        var digest: Int64
        /// The gateway's time.
        var time: Int64
    }

    public enum Verdict: Hashable, Sendable {
        /// A new record and its time.
        case store(Timestamp, doubt: String?)
        case duplicate
    }

    /// A finding to report to people.
    public enum Notice: Hashable, Sendable {
        /// The device no longer has these records.
        case gap(ClosedRange<Int64>)
        /// The numbers restart.
        case restarted
        /// The device's clock was set.
        case clockSet
    }

    /// The range of numbers; others are not record numbers.
    static let numbers: ClosedRange<Int64> = 0...(1 << 56)
    /// The latest plausible time in microseconds since 1970.
    public static let latest = DeviceClock.plausible.upperBound
    /// The maximum number of notices that wait.
    private static let mostNotices = 16
    /// The resolution of device clocks.
    private static let resolution: Int64 = 1_000_000

    private let isDense: Bool
    /// The highest number that the field can hold; `nil` if numbers do not wrap.
    public let highest: Int64?
    /// The number of times that the numbers started anew.
    public internal(set) var generation: Int64 = 0
    /// The record through which all are stored.
    var done: Mark?
    /// The first record of an unfinished download.
    var first: Int64?
    /// The last record that followed the first one without a hole.
    var front: Mark?
    /// The record with the highest number.
    var top: Mark?
    /// The newest record before the numbers restarted.
    var before: Mark?
    var received = ReceivedRecords()
    var clock = DeviceClock()
    private var request: RecordRequest?
    private var notices: [Notice] = []
    /// The records of the current request, with duplicates.
    public private(set) var count = 0
    /// The new records of the current request.
    public private(set) var stored = 0
    /// True if the device sent the newest stored record again.
    public private(set) var isContinuing = false
    /// True if the numbers restarted during the current request.
    public private(set) var isRestarted = false
    /// The number of the last examined record, continued beyond the field; `nil` without one.
    public private(set) var lastNumber: Int64?

    public init(_ rule: RecordRule) {
        isDense = rule.isDense
        highest = rule.wrapBits.flatMap { (2...55).contains($0) ? (1 << Int64($0)) - 1 : nil }
    }

    /// The number of the record from which a download continues; `nil` without one.
    public var resumption: Int64? { resumable?.number }

    /// The time of the newest stored record.
    public var newest: Timestamp? { (top ?? done).map { Timestamp(microseconds: $0.time) } }

    /// The number through which all records are stored, and its time.
    public var position: (number: Int64, time: Timestamp)? {
        done.map { ($0.number, Timestamp(microseconds: $0.time)) }
    }

    private var resumable: Mark? {
        guard let first, let front, let run = received.run(of: first), run.last > first,
            run.last == front.number
        else { return done }
        return front
    }

    /// True if a record can have the number.
    public static func isPlausible(_ number: Int64) -> Bool { numbers.contains(number) }

    // MARK: - Downloads

    /// Records a comparison of the device's clock with the gateway's.
    public mutating func compare(device: Int64, gateway: Timestamp) {
        guard device.magnitude <= DeviceClock.plausible.upperBound.magnitude else { return }
        if clock.compare(device: device, gateway: gateway.microseconds) { add(.clockSet) }
    }

    /// Starts a request.
    public mutating func begin(_ request: RecordRequest) {
        if let mark = resumable { advance(to: mark) }
        (self.request, first, front) = (request, nil, nil)
        (count, stored, isContinuing, isRestarted) = (0, 0, false, false)
        clock.beginRequest()
    }

    /// Ends a request after which the device has no further record.
    public mutating func complete() {
        guard request != nil else { return }
        if let top { advance(to: top) }
        received = ReceivedRecords()
        (request, first, front) = (nil, nil, nil)
        clock.finishDownload()
    }

    /// Makes `mark` the record through which all are stored, and reports the missing ones before it.
    private mutating func advance(to mark: Mark) {
        guard mark.number > done?.number ?? .min else { return }
        if isDense {
            for gap in received.missing(after: done?.number, through: mark.number) { add(.gap(gap)) }
        }
        received.removeAll(through: mark.number)
        done = mark
    }

    /// Examines a record that belongs to one of the same number, with the generation of that one's numbers.
    ///
    /// - Returns: True if it is new.
    public mutating func receive(companion number: Int64, generation: Int64) -> Bool {
        if generation != self.generation {
            received = ReceivedRecords()
            self.generation = generation
        }
        guard Self.numbers.contains(number), !received.contains(number) else { return false }
        received.insert(number, isDense: false)
        return true
    }

    // MARK: - Records

    /// Examines a record that was received at `now`.
    public mutating func receive(_ record: ReceivedRecord, at now: Timestamp) -> Verdict {
        count += 1
        if let age = record.age { return receive(record, agedBy: age, at: now.microseconds) }
        let number = record.number.map(continued) ?? record.reading
        lastNumber = number
        let earlier = [front, done].compactMap { $0 }.first { $0.number < number ?? .max }
        let dated = clock.date(record.reading, after: earlier?.time, at: now.microseconds)
        guard let number, Self.numbers.contains(number) else {
            stored += 1
            return .store(now, doubt: number == nil ? "the record has no time" : "the record has no number")
        }
        let mark = Mark(number: number, digest: record.reading ?? record.digest, time: dated.time)
        if isKnown(mark, dated) { return .duplicate }
        return store(mark, doubt: dated.doubt)
    }

    /// Returns the full number nearest to the newest one whose field value is `number`.
    private func continued(_ number: Int64) -> Int64 {
        guard let highest, (0...highest).contains(number), let newest = (top ?? done)?.number else { return number }
        let half = highest / 2 + 1
        var distance = number - (newest & highest)
        if distance > half { distance -= highest + 1 }
        if distance < -half { distance += highest + 1 }
        return newest + distance < 0 ? number : newest + distance
    }

    /// Examines a record whose age identifies it.
    private mutating func receive(_ record: ReceivedRecord, agedBy age: Int64, at now: Int64) -> Verdict {
        guard (0...now).contains(age) else {
            stored += 1
            return .store(Timestamp(microseconds: now), doubt: "the record has no time")
        }
        let (time, interval) = (now - age, max(1, record.interval ?? Self.resolution))
        guard let last = top ?? done else { return store(Mark(number: 0, digest: 0, time: time), doubt: nil) }
        guard time - last.time > interval / 2 else {
            isContinuing = true
            return .duplicate
        }
        let steps = max(1, (time - last.time + interval / 2) / interval)
        return store(Mark(number: last.number + steps, digest: 0, time: time), doubt: nil)
    }

    /// True if the record is stored already; recognises numbers that restart.
    private mutating func isKnown(_ mark: Mark, _ dated: DeviceClock.Dated) -> Bool {
        if isFromBefore(mark, dated) { return true }
        if let done {
            if mark.number == done.number, mark.digest == done.digest {
                isContinuing = true
                return true
            }
            if mark.number <= done.number {
                guard mark.number == done.number || startsAnew(mark, after: done, dated) else { return true }
                restart()
                return false
            }
        }
        return received.contains(mark.number)
    }

    /// True for a record with a number from before the numbers restarted.
    private func isFromBefore(_ mark: Mark, _ dated: DeviceClock.Dated) -> Bool {
        guard let before, dated.isComparable, dated.doubt == nil else { return false }
        return mark.time < before.time - Self.resolution / 2
            || (mark.number, mark.digest) == (before.number, before.digest)
    }

    /// True if a lower number than that of the newest stored record shows that the device was reset.
    private func startsAnew(_ mark: Mark, after done: Mark, _ dated: DeviceClock.Dated) -> Bool {
        switch request {
        case .allAfterNone: true
        // A device may send more than was asked for.
        case .from, .within: false
        case .all, nil: !isContinuing && dated.isComparable && mark.time > done.time + Self.resolution
        }
    }

    /// Starts a new series of numbers.
    private mutating func restart() {
        before = [done, top].compactMap { $0 }.max { $0.time < $1.time } ?? before
        generation &+= 1
        (done, first, front, top) = (nil, nil, nil, nil)
        received = ReceivedRecords()
        isRestarted = true
        add(.restarted)
    }

    private mutating func store(_ mark: Mark, doubt: String?) -> Verdict {
        stored += 1
        received.insert(mark.number, isDense: isDense)
        if mark.number > top?.number ?? .min { top = mark }
        if request == nil {
            followLive(mark)
        } else if let first {
            if received.run(of: first)?.last == mark.number { front = mark }
        } else if !lacksLower {
            (first, front) = (mark.number, mark)
        }
        return .store(Timestamp(microseconds: mark.time), doubt: doubt)
    }

    /// True if the current request leaves out lower numbers, which are new because the numbers started anew.
    private var lacksLower: Bool { isRestarted && request?.lowest ?? 0 > 0 }

    /// Advances with records that arrive after a complete download on the same link.
    ///
    /// A missing number stops this until the next download.
    private mutating func followLive(_ mark: Mark) {
        guard isLive, mark == top, !isDense || done.map({ $0.number + 1 == mark.number }) ?? true else { return }
        advance(to: mark)
    }

    /// True after a complete download until the link ends: all records arrive as they are made.
    public private(set) var isLive = false

    /// Records that a download was complete, or that the link has ended.
    public mutating func setLive(_ isLive: Bool) {
        self.isLive = isLive
    }

    /// True if numbers between received ones are missing, for example because this host lost a notification.
    public var hasHoles: Bool { isDense && !received.missing(after: nil, through: .max).isEmpty }

    /// True if the numbers have reached the end of their field since the record that was requested first.
    public var isAtWrap: Bool {
        guard let highest, let done, let top else { return false }
        return top.number >= done.number | highest
    }

    /// True if the device may have records from before its numbers have wrapped.
    public var hasWrapped: Bool { resumption.flatMap { number in highest.map { number > $0 } } ?? false }

    private mutating func add(_ notice: Notice) {
        if notices.count < Self.mostNotices { notices.append(notice) }
    }

    /// Removes and returns the findings to report.
    public mutating func removeNotices() -> [Notice] {
        defer { notices.removeAll() }
        return notices
    }
}
