public import GattherdModel

/// Decides which received records are new, when they were made, and from where a download continues.
///
/// A record has a number, which only grows until the device is reset. Numbers that wrap are continued beyond their
/// field. Numbers restart when the newest stored record is gone or has other contents, or when a lower number has a
/// later time. The state is a value that is committed together with the readings it covers.
public struct RecordTracker: Hashable, Sendable {
    typealias Mark = RecordMark

    public enum Outcome: Hashable, Sendable {
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
    /// The resolution of device clocks, in microseconds.
    static let resolution: Int64 = 1_000_000

    /// True if a missing number is a lost record; times that identify records leave out most numbers.
    let isDense: Bool
    /// True if only its time identifies a record, and its contents.
    private let isTimed: Bool
    /// True if records have a time by the device's clock.
    let hasReadings: Bool
    /// The highest number that the field can hold; `nil` if numbers do not wrap.
    public let highest: Int64?
    /// The number of times that the numbers started anew.
    public internal(set) var generation: Int64 = 0
    /// The newest record before which no record is missing.
    var done: Mark?
    /// The records of the current or last request, from which an unfinished download continues.
    var progress = RecordProgress()
    /// The record with the highest number.
    var top: Mark?
    /// The record with the highest number at the start of the current request.
    var topAtStart: Mark?
    /// The newest record before the numbers restarted.
    var before: Mark?
    var received = ReceivedRecords()
    /// The records of the last request for all records, if they have no numbers.
    var list = ListedRecords()
    var clock = DeviceClock()
    /// True if the device dates its records by the time that it is told.
    var isTold = false
    /// The current request; `nil` before its start and after its end, when all records are live ones.
    private var request: RecordRequest?
    /// The time at which the current request began, in microseconds since 1970.
    var start: Int64 = 0
    /// The time in seconds by the device's clock from which records may have been requested; `nil` for all.
    private var since: Int64?
    /// The boot of the gateway, and its clock minus its uptime in microseconds; empty and 0 if unknown.
    let boot: String
    var base: Int64 = 0
    private var notices: [Notice] = []
    /// The number of records of the current request, duplicates included.
    public private(set) var count = 0
    /// The new records of the current request.
    public private(set) var stored = 0
    /// The new records that the device has made since the start of the current request.
    public private(set) var live = 0
    /// True if the device sent the newest stored record again.
    private var isContinuing = false
    /// True if the current request brought a record that was stored before the download.
    private var hasKnown = false
    /// The lowest number after ``done`` that the current request brought again.
    private var repeated: Int64?
    /// True if the numbers restarted, lower ones may be missing, and no request for all records has begun since.
    public private(set) var isRestarted = false
    /// True if this host has lost values since the start of the newest request, which may have been records.
    ///
    /// Later records move the position no further, so the next request continues before the loss.
    public var hasLosses = false
    /// The number of the last examined record, continued beyond the field; `nil` without one.
    public private(set) var lastNumber: Int64?
    /// The time of the last examined record; `nil` if it has no number.
    public private(set) var lastTime: Timestamp?

    /// - Parameters:
    ///   - rule: The metrics that number and date the records.
    ///   - boot: The identifier of the gateway's boot.
    public init(_ rule: RecordRule, boot: String = "") {
        self.boot = boot
        isDense = rule.isDense && rule.countsRecords
        isTimed = !rule.countsRecords && !rule.isBlock
        hasReadings = if case .clock = rule.time { true } else { false }
        highest = rule.wrapBits.flatMap { (2...55).contains($0) ? (1 << Int64($0)) - 1 : nil }
    }

    /// The number of the record from which a download continues; `nil` without one.
    public var resumption: Int64? { resumable?.number }

    /// The time of the record from which a download continues.
    public var newest: Timestamp? { resumable.map { Timestamp(microseconds: $0.time) } }

    /// The number through which all records are stored, and its time.
    public var position: (number: Int64, time: Timestamp)? {
        done.map { ($0.number, Timestamp(microseconds: $0.time)) }
    }

    var resumable: Mark? { progress.front ?? done }

    /// True from the start of a request until its end.
    public var isRequested: Bool { request != nil }

    /// True if a record can have the number.
    public static func isPlausible(_ number: Int64) -> Bool { numbers.contains(number) }

    // MARK: - Downloads

    /// Starts a request at `now`.
    ///
    /// - Parameters:
    ///   - request: The requested records.
    ///   - relation: Its relation to the request before it.
    ///   - now: The gateway's time.
    public mutating func begin(_ request: RecordRequest, _ relation: RecordRequest.Relation = .new, at now: Timestamp) {
        (self.request, start, topAtStart) = (request, now.microseconds, top)
        (count, stored, live, isContinuing, hasLosses) = (0, 0, 0, false, false)
        // A live record may restart the numbers between the choice of a request and its start.
        if !request.isFiltered { isRestarted = false }
        clock.beginRequest()
        guard relation != .continuation else { return }
        if !request.isFiltered {
            since = isTimed && !isTold ? requestTime : nil
            list.begin(isPartial: since != nil)
        }
        if relation == .new, let mark = resumable { advance(to: mark) }
        (progress, hasKnown, repeated) = (RecordProgress(), false, nil)
    }

    /// Ends a request that has failed, or whose link has ended: later records are no answers to it.
    public mutating func end() {
        (request, isLive) = (nil, false)
    }

    /// Ends a request after which the device has no further record; later ones arrive as they are made.
    public mutating func complete() {
        guard let request else { return }
        // The numbers may have restarted, or values were lost, after the request was found to be complete.
        guard !lacksLower, !hasLosses else { return end() }
        if !request.isFiltered { list.complete() }
        if let top { advance(to: top) }
        received = ReceivedRecords()
        (self.request, progress, isLive) = (nil, RecordProgress(), true)
        clock.finishDownload()
    }

    /// Sets `mark` as the newest record before which none is missing, and reports the gap before it.
    private mutating func advance(to mark: Mark) {
        guard mark.number > done?.number ?? .min else { return }
        if isDense {
            for gap in received.missing(after: done?.number, through: mark.number) { add(.gap(gap)) }
        }
        received.removeAll(through: mark.number)
        done = mark
    }

    /// Examines a record that belongs to a record of another stream, which has the same number and the time.
    ///
    /// - Parameters:
    ///   - number: The number of both records.
    ///   - generation: The generation of the other stream's numbers.
    /// - Returns: True if the record is new.
    public mutating func receive(companion number: Int64, generation: Int64) -> Bool {
        if generation != self.generation {
            received = ReceivedRecords()
            self.generation = generation
        }
        // A record without a record number is stored, as is the one to which it belongs.
        guard Self.numbers.contains(number) else { return true }
        guard !received.contains(number) else { return false }
        received.insert(number, isDense: false)
        return true
    }

    // MARK: - Records

    /// Examines a record that was received at `now`.
    public mutating func receive(_ record: ReceivedRecord, at now: Timestamp) -> Outcome {
        count += 1
        if let age = record.age { return receive(record, agedBy: age, at: now.microseconds) }
        let number = record.number.map(continued) ?? record.reading
        (lastNumber, lastTime) = (number, nil)
        let unchanged = clock
        var dated = date(record, number, at: now.microseconds)
        // A live record does not tell which setting of the clock the stored ones after it have.
        if request != nil, isLive(dated) { clock = unchanged }
        guard let number, Self.numbers.contains(number) else {
            if isListed(record, isUnique: false) { return .duplicate }
            stored += 1
            return .store(now, doubt: number == nil ? "the record has no time" : "the record has no number")
        }
        // A clock that counts as UTC does not follow steps of the gateway's.
        let isUTC = dated.isComparable && dated.doubt != nil
        let digest = record.reading ?? record.digest
        var mark = Mark(number: number, digest: digest, time: dated.time, base: isUTC ? 0 : base)
        if !dated.isComparable { mark.receipt = now.microseconds }
        // Digests of different records may be equal. A record that is later than all stored ones is none of them.
        let newestNumber = max(top?.number ?? .min, before?.number ?? .min)
        if isTimed, isListed(record, isUnique: true), number <= newestNumber { return .duplicate }
        // The older records that follow a live one may have numbers from before a wrap.
        if done == nil, top == nil, request == nil || isLive(dated) { mark.number += round }
        if precedesWrap(mark, dated) { raiseNumbers(by: round) }
        // A record of another stream may belong to this one, also if this one is known.
        defer { (lastNumber, lastTime) = (mark.number, min(now, Timestamp(microseconds: mark.time))) }
        if let earlier = earlierNumber(of: mark, record.reading) {
            mark.number = earlier
            if earlier <= done?.number ?? .min || received.contains(earlier) { return .duplicate }
        }
        if isKnown(&mark, &dated, record, at: now.microseconds) { return .duplicate }
        if isTimed, request == nil { list.add(record.digest) }
        if isLive, request == nil { redateLive(&mark, &dated, at: now.microseconds) }
        return store(mark, dated, at: now.microseconds)
    }

    /// True if an earlier request for all records brought the record.
    ///
    /// Records that arrive without such a request may be equal.
    private mutating func isListed(_ record: ReceivedRecord, isUnique: Bool) -> Bool {
        guard let request, !request.isFiltered else { return false }
        // A device that sends such a record does not leave out the earlier ones.
        if let since, let reading = record.reading, reading / Self.resolution < since { list.isPartial = false }
        return list.receive(record.digest, isUnique: isUnique)
    }

    /// True if a record that is not in the list is new, because the list has all records and times do not tell.
    ///
    /// The device's clock was set. The lists of a device that is told the time differ between downloads.
    private func isUnlisted(after done: Mark, _ dated: DeviceClock.Dated) -> Bool {
        guard let request, !request.isFiltered, list.isWhole, !isTold else { return false }
        return !dated.isComparable || done.receipt != nil
    }

    /// The number of values of the field; 0 if numbers do not wrap.
    private var round: Int64 { highest.map { $0 + 1 } ?? 0 }

    /// Returns the full number nearest to the newest one whose field value is `number`.
    private func continued(_ number: Int64) -> Int64 {
        guard let highest, (0...highest).contains(number), let newest = (top ?? done)?.number else { return number }
        let half = highest / 2 + 1
        var distance = number - (newest & highest)
        if distance > half { distance -= highest + 1 }
        if distance < -half { distance += highest + 1 }
        return newest + distance < 0 ? number : newest + distance
    }

    /// True for the first record from before a wrap, if the device sends the newest records first.
    private func precedesWrap(_ mark: Mark, _ dated: DeviceClock.Dated) -> Bool {
        guard round > 0, done == nil, let top, top.receipt == nil, dated.isComparable else { return false }
        return mark.number > top.number + round / 2 && mark.time < top.time
    }

    /// Raises the numbers of the first download, so that older records can have lower ones.
    private mutating func raiseNumbers(by round: Int64) {
        top?.number += round
        topAtStart?.number += round
        repeated = repeated.map { $0 + round }
        progress.raiseNumbers(by: round)
        received.raiseNumbers(by: round)
    }

    /// Examines a record whose age identifies it.
    ///
    /// Its number counts the intervals since a record before it; the first number counts them since 1970.
    private mutating func receive(_ record: ReceivedRecord, agedBy age: Int64, at now: Int64) -> Outcome {
        // Records from the future or from before 1970 are not dated: sums with their times could overflow.
        guard age >= 0, age <= now else { return storeUndated(at: now) }
        let (time, interval) = (now - age, max(1, record.interval ?? Self.resolution))
        lastTime = Timestamp(microseconds: time)
        let dated = DeviceClock.Dated(time: time, isComparable: true)
        let known = [done, progress.last, top].compactMap { $0 }.sorted { $0.time < $1.time }
        let last = known.last { $0.time <= time + interval / 2 } ?? known.first
        let steps = last.map { Self.steps(from: $0.time, to: time, interval) } ?? 0
        let number = last.map { $0.number + steps } ?? time / interval
        guard Self.numbers.contains(number) else { return storeUndated(at: now) }
        if let done, number <= done.number {
            (isContinuing, hasKnown) = (true, true)
            return .duplicate
        }
        guard number != last?.number, !received.contains(number) else { return .duplicate }
        return store(Mark(number: number, digest: 0, time: time, base: base), dated, at: now)
    }

    private mutating func storeUndated(at now: Int64) -> Outcome {
        stored += 1
        return .store(Timestamp(microseconds: now), doubt: "the record has no time")
    }

    /// The number of intervals between two times, rounded.
    private static func steps(from first: Int64, to last: Int64, _ interval: Int64) -> Int64 {
        let steps = ((last - first).magnitude + UInt64(interval) / 2) / UInt64(interval)
        return last < first ? -Int64(clamping: steps) : Int64(clamping: steps)
    }

    /// True if the record is stored already; recognises numbers that restart.
    private mutating func isKnown(
        _ mark: inout Mark,
        _ dated: inout DeviceClock.Dated,
        _ record: ReceivedRecord,
        at now: Int64
    ) -> Bool {
        if isFromBefore(mark, dated) { return true }
        guard let done, mark.number <= done.number else {
            guard received.contains(mark.number) else { return false }
            repeated = min(repeated ?? .max, mark.number)
            return true
        }
        // The device's clock may have been set back, so that later records have earlier times.
        if isTimed, isMadeAfter(done, mark, dated) || isUnlisted(after: done, dated) {
            return received.contains(mark.number)
        }
        let isSame = self.isSame(mark, as: done)
        guard isSame || (mark.number < done.number && !startsAnew(mark, after: done, dated)) else {
            redate(&mark, &dated, record, after: done, at: now)
            restart(by: &mark, dated)
            redate(&mark, &dated, record, after: before, at: now)
            return false
        }
        (isContinuing, hasKnown) = (isContinuing || isSame, true)
        return true
    }

    /// True for a record with a number from before the numbers restarted.
    private func isFromBefore(_ mark: Mark, _ dated: DeviceClock.Dated) -> Bool {
        guard let before, dated.isComparable, dated.doubt == nil else { return false }
        return before.receipt == nil && mark.time < before.time - Self.resolution / 2
            || isSame(mark, as: before)
    }

    /// True if a lower number than that of the newest stored record shows that the device was reset.
    private func startsAnew(_ mark: Mark, after done: Mark, _ dated: DeviceClock.Dated) -> Bool {
        switch request {
        // A device whose numbers have wrapped may have none with the number, and older ones.
        // The clock of a device that was reset is no proof if it cannot be read.
        case .allAfterNone:
            !dated.isComparable || dated.doubt != nil && highest == nil || mark.time > done.latest + Self.resolution
        // A device may send more than was asked for.
        case .from, .within: false
        case .all, nil: !isContinuing && dated.isComparable && mark.time > done.latest + Self.resolution
        }
    }

    /// Starts a new series of numbers, to which the record belongs.
    private mutating func restart(by mark: inout Mark, _ dated: DeviceClock.Dated) {
        // A record with a higher number and a later time belongs to the new series: it arrived first, as a live one.
        var first = top.flatMap { top in
            // A device that was reset may have lost its clock, too.
            let isOrdered = done.map { $0.time < mark.time } ?? true && mark.time < top.time
            let isLater = dated.isComparable && top.receipt == nil && isOrdered
            return isLater && top.number > mark.number ? top : nil
        }
        before = [done, first == nil ? top : nil].compactMap { $0 }.max { $0.time < $1.time } ?? before
        // Records from before the first received one may follow, with numbers from before a wrap.
        let shift = highest.map { (mark.number & $0) + round - mark.number } ?? 0
        received = ReceivedRecords(
            first.map { last in
                // A number that this request brought again may be one from before the restart.
                let run = isDense && repeated == nil ? received.run(of: last.number) : nil
                return [.init(first: (run?.first ?? last.number) + shift, last: last.number + shift, step: 1)]
            } ?? []
        )
        first?.number += shift
        mark.number += shift
        generation &+= 1
        // Records that seemed to be known may belong to the new series, too.
        isRestarted = (request?.isFiltered ?? true) || hasKnown
        (done, top, topAtStart, progress) = (nil, first, nil, RecordProgress())
        (hasKnown, repeated) = (false, nil)
        add(.restarted)
    }

    private mutating func store(_ mark: Mark, _ dated: DeviceClock.Dated, at now: Int64) -> Outcome {
        stored += 1
        received.insert(mark.number, isDense: isDense)
        if mark.number > top?.number ?? .min { top = mark }
        if request == nil {
            followLive(mark)
        } else if isLive(dated) {
            live += 1
        } else if !lacksLower, !hasLosses, isNext(mark) {
            progress.add(mark, after: needsProof(dated) ? max(0, now &- start) : nil)
        }
        return .store(Timestamp(microseconds: min(mark.time, now)), doubt: dated.doubt)
    }

    /// True if the record was certainly made after the start of the current request.
    private func isLive(_ dated: DeviceClock.Dated) -> Bool {
        dated.isComparable && dated.doubt == nil && dated.time > start - Self.resolution
    }

    /// True if the record may be a live one: numbers with gaps do not tell, and the device's clock may have been set.
    private func needsProof(_ dated: DeviceClock.Dated) -> Bool {
        !isDense && hasReadings && !isTold && (dated.isComparable || clock.isReadable)
    }

    /// True if no record is missing between those of the current request and this one, as far as the numbers show.
    private func isNext(_ mark: Mark) -> Bool {
        guard isDense else { return true }
        if let first = progress.first { return mark.number < first || received.run(of: first)?.last == mark.number }
        guard let known = anchor ?? repeated else { return true }
        return received.missing(after: known, through: mark.number).isEmpty
    }

    /// The number after which the device has all records: it has sent a stored one again.
    private var anchor: Int64? { hasKnown ? done?.number : nil }

    /// True if missing numbers reveal every record that this host has lost.
    public var isAnchored: Bool { isDense && anchor != nil }

    /// True if the current request has not stored lower numbers, which are new because the numbers started anew.
    private var lacksLower: Bool { isRestarted && request != nil }

    /// Advances with records that arrive after a complete download on the same link.
    ///
    /// A missing number stops this until the next download, and so do lost values and numbers that restart.
    private mutating func followLive(_ mark: Mark) {
        guard isLive, !isRestarted, !hasLosses, mark == top else { return }
        if !isDense || done.map({ $0.number + 1 == mark.number }) ?? true { advance(to: mark) }
    }

    /// True after a complete download until the link ends: all records arrive as they are made.
    private var isLive = false

    /// True if numbers between received ones are missing, for example because this host lost a notification.
    public var hasHoles: Bool { isDense && !received.missing(after: anchor, through: .max).isEmpty }

    /// True if the numbers have reached the end of their field since the record that was requested first.
    public var isAtWrap: Bool {
        guard let highest, let done, let top else { return false }
        return top.number >= done.number | highest
    }

    /// True if the device has made the last record of the requested range, and maybe others after it.
    public var hasRangeEnd: Bool {
        guard case .within(let range) = request, let highest, let done, let top else { return false }
        return top.number >= done.number + (range.upperBound - done.number) & highest
    }

    /// True if the device may have records from before its numbers have wrapped.
    public var hasWrapped: Bool { resumption.flatMap { number in highest.map { number > $0 } } ?? false }

    mutating func add(_ notice: Notice) {
        if notices.count < Self.mostNotices { notices.append(notice) }
    }

    /// Removes and returns the findings to report.
    public mutating func removeNotices() -> [Notice] {
        defer { notices.removeAll() }
        return notices
    }
}
