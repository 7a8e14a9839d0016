import GattherdGATT

/// The records that a peripheral has stored: a ring, numbers, a clock, and the download in progress.
struct SimulatedRecords: Hashable, Sendable {
    /// The clock from one record on.
    private struct ClockSetting: Hashable, Sendable {
        let record: Int
        /// The device's clock minus the right time.
        let error: Duration
    }

    /// The records that a request asks for.
    private struct Transfer: Hashable, Sendable {
        var records: [Int]
        var next = 0
        let answer: [UInt8]
    }

    let spec: RecordsSpec
    /// The wall clock at the start of the simulation.
    private let start: Duration
    /// The first record since the last reset.
    private var first = 0
    private var settings: [ClockSetting]
    private var transfer: Transfer?
    /// The records until the link is cut; `nil` if it is not.
    private var untilCut: Int?
    private var random: UInt64
    /// The number of requests for the log of a RuuviTag.
    private var logRequests = 0
    /// The number of transfers; timers of earlier ones are ignored.
    private(set) var epoch: UInt64 = 0

    init(_ spec: RecordsSpec, start: Duration, seed: UInt64) {
        (self.spec, self.start) = (spec, start)
        settings = [ClockSetting(record: 0, error: spec.clockError)]
        random = seed | 1
        untilCut = nextCut()
    }

    // MARK: - Records

    /// The number of records that were made, also those that are overwritten.
    func made(at now: Duration) -> Int {
        spec.count + (spec.interval > .zero ? Int(now / spec.interval) : 0)
    }

    /// The records that are stored.
    private func stored(at now: Duration) -> Range<Int> {
        let made = made(at: now)
        return max(min(first, made), made - spec.capacity)..<made
    }

    func number(of record: Int) -> Int { (record - first) & ((1 << spec.numberBits) - 1) }

    /// The right time of a record; those before the start were made at the same intervals.
    func time(of record: Int) -> Duration {
        let interval = spec.interval > .zero ? spec.interval : .seconds(60)
        return start + interval * (record - spec.count + 1)
    }

    /// The device's clock when it made a record.
    private func reading(of record: Int) -> Duration {
        time(of: record) + (settings.last { $0.record <= record }?.error ?? .zero)
    }

    /// The device's clock.
    func clock(at now: Duration) -> Duration { start + now + (settings.last?.error ?? .zero) }

    /// Sets the device's clock.
    mutating func setClock(error: Duration, at now: Duration) {
        settings.append(ClockSetting(record: made(at: now), error: error))
    }

    /// Loses all records; the next one has the number 0.
    mutating func reset(at now: Duration) {
        first = made(at: now)
        cancel()
    }

    // MARK: - Access

    /// Handles a request to the control point; returns a value to send at once, if there is one.
    ///
    /// Record Access Control Point, and the log of RuuviTags.
    mutating func request(_ octets: [UInt8], at now: Duration) -> [UInt8]? {
        epoch += 1
        transfer = nil
        switch (spec.form, octets.first) {
        case (.log, 0x3A):
            logRequests += 1
            let since = octets.dropFirst(7).prefix(4).reduce(0) { $0 << 8 | Int($1) }
            let records = stored(at: now).filter { logged($0) >= since }
            transfer = Transfer(records: Array(records), answer: [0x3A, 0x3A, 0x10] + Array(repeating: 0xFF, count: 8))
        case (.log, _): return nil
        case (_, 1):
            let records = chosen(octets, at: now)
            transfer = Transfer(records: records, answer: [6, 0, 1, records.isEmpty ? 6 : 1])
        case (_, 3): return [6, 0, 3, 1]
        case (_, 4): return [5, 0] + littleEndian(chosen(octets, at: now).count, octets: spec.numberBits / 8)
        default: return [6, 0, octets.first ?? 0, 2]
        }
        return nil
    }

    private func chosen(_ octets: [UInt8], at now: Duration) -> [Int] {
        let records = stored(at: now)
        guard octets.count > 3, octets[1] == 3 || octets[1] == 4 else { return Array(records) }
        let width = octets[1] == 4 ? (octets.count - 3) / 2 : octets.count - 3
        let least = Self.number(octets.dropFirst(3).prefix(width))
        let most = octets[1] == 4 ? Self.number(octets.suffix(width)) : .max
        return records.filter { number(of: $0) >= least && number(of: $0) <= most }
    }

    /// Returns a little-endian number of at most 4 octets.
    private static func number(_ octets: ArraySlice<UInt8>) -> Int {
        octets.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    /// The next value of a transfer.
    enum Next: Hashable {
        case value([UInt8], isLast: Bool)
        /// The link is cut before the next value.
        case cut
    }

    /// Removes and returns the next value; `nil` without a transfer.
    mutating func next() -> Next? {
        guard var current = transfer else { return nil }
        if let left = untilCut {
            untilCut = left - 1
            if left <= 0 {
                untilCut = nextCut()
                cancel()
                return .cut
            }
        }
        guard current.next < current.records.count else {
            transfer = nil
            return .value(current.answer, isLast: true)
        }
        let record = current.records[current.next]
        current.next += 1
        transfer = current
        return .value(value(of: record), isLast: false)
    }

    /// Ends the transfer, at the end of the link.
    mutating func cancel() {
        epoch += 1
        transfer = nil
    }

    private mutating func nextCut() -> Int? {
        guard let range = spec.cut else { return nil }
        random ^= random << 13
        random ^= random >> 7
        random ^= random << 17
        return range.lowerBound + Int(random % UInt64(range.count))
    }
}

// MARK: - Values

extension SimulatedRecords {
    /// The value of a record, which identifies it.
    ///
    /// A numbered record also has its right time in milliseconds.
    func value(of record: Int) -> [UInt8] {
        switch spec.form {
        case .glucose:
            [2] + littleEndian(number(of: record), octets: 2) + Self.date(reading(of: record))
                + [UInt8(record % 1000 & 0xFF), 0xB0 | UInt8(record % 1000 >> 8), 0x11]
        case .numbered:
            littleEndian(number(of: record), octets: spec.numberBits / 8)
                + littleEndian(Int(reading(of: record).components.seconds), octets: 4)
                + littleEndian(record, octets: 4)
                + littleEndian(Int(time(of: record) / .milliseconds(1)), octets: 8)
        case .log: Self.log(record, logged(record))
        case .blocks: []
        }
    }

    /// The time of a log entry of a RuuviTag in seconds: three entries have the same one.
    ///
    /// The tag adds the time of the request to each entry in whole seconds, which varies by one.
    private func logged(_ record: Int) -> Int {
        Int(time(of: record - record % 3).components.seconds) - logRequests % 2
    }

    /// A log entry of a RuuviTag: humidity, pressure and temperature in turn.
    private static func log(_ record: Int, _ seconds: Int) -> [UInt8] {
        let kind = record % 3
        let sources: [UInt8] = [0x31, 0x32, 0x30]
        let values = [5000, 101_325, 2000 + record % 1000]
        return [0x3A, sources[kind], 0x10] + littleEndian(seconds, octets: 4).reversed()
            + littleEndian(values[kind], octets: 4).reversed()
    }

    /// The answer of an Aranet4 to a request for its history of one quantity.
    func block(_ request: [UInt8], at now: Duration) -> [UInt8]? {
        guard request.count >= 4, request[0] == 0x61 else { return nil }
        let records = stored(at: now)
        let index = Int(request[2]) | Int(request[3]) << 8
        let newest = time(of: records.upperBound - 1)
        let age = max(0, Int((start + now - newest).components.seconds))
        let interval = max(1, Int(spec.interval.components.seconds))
        let rest = records.dropFirst(max(0, index - 1)).prefix(100)
        let header = [request[1]] + littleEndian(interval, octets: 2) + littleEndian(records.count, octets: 2)
        let place = littleEndian(age, octets: 2) + littleEndian(index, octets: 2) + [UInt8(rest.count)]
        return header + place + rest.flatMap { littleEndian($0 % 100, octets: request[1] == 2 ? 1 : 2) }
    }

    /// Current Time of the device's clock.
    func currentTime(at now: Duration) -> [UInt8] {
        let clock = clock(at: now)
        let fraction = clock.components.attoseconds / (1_000_000_000_000_000_000 / 256)
        return Self.date(clock) + [0, UInt8(truncatingIfNeeded: fraction), 0]
    }

    /// Date Time of a time since 1970.
    private static func date(_ time: Duration) -> [UInt8] {
        let seconds = Int(time.components.seconds)
        let (days, second) = (seconds.quotientAndRemainder(dividingBy: 86_400))
        // Years that begin in March, so that the leap day is the last one.
        let day = days + 719_468
        let era = day / 146_097
        let dayOfEra = day % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let parts = [month, dayOfYear - (153 * shifted + 2) / 5 + 1, second / 3600, second / 60 % 60, second % 60]
        return littleEndian(year, octets: 2) + parts.map { UInt8(truncatingIfNeeded: $0) }
    }
}
