import GattherdMachines
import GattherdModel
import GattherdSync

/// The records of one decoded payload.
struct RecordPayload {
    private let rule: RecordRule
    /// The digest of a payload with one record.
    private let digest: Int64
    private let received: Timestamp
    /// The samples that are common to all records.
    private let common: [Sample]
    /// The samples of each record.
    private let records: [[Sample]]
    let count: Int

    init(_ samples: [Sample], _ rule: RecordRule, _ octets: Span<UInt8>, at time: Timestamp) {
        (self.rule, received) = (rule, time)
        var digest = RecordDigest()
        if !rule.isBlock { digest.add(octets) }
        self.digest = digest.value
        guard rule.isBlock else {
            (common, records, count) = (samples, [], 1)
            return
        }
        let repeated = Dictionary(grouping: samples.filter { rule.repeated.contains($0.metric) }, by: \.metric)
        let count = repeated.values.map(\.count).max() ?? 0
        // A shorter list, such as the reasons of some values, belongs to no certain record.
        let lists = repeated.values.filter { $0.count == count }.sorted { $0[0].metric < $1[0].metric }
        records = (0..<count).map { index in lists.map { $0[index] } }
        common = samples.filter { !rule.repeated.contains($0.metric) }
        self.count = count
    }

    /// Appends the samples of a record.
    func append(_ index: Int, to samples: inout [Sample]) {
        guard rule.isBlock else { return samples += common }
        // The place of a block says nothing about one of its records.
        for sample in common where !rule.places.contains(sample.metric) {
            guard sample.metric == rule.number, let number = number(sample.metric, of: index) else {
                samples.append(sample)
                continue
            }
            samples.append(Sample(metric: sample.metric, value: .integer(number)))
        }
        samples += records[index]
    }

    /// The record's number and times.
    func record(_ index: Int) -> ReceivedRecord {
        var record = ReceivedRecord(digest: rule.isBlock ? digest(of: index) : digest)
        let interval = rule.interval.flatMap { microseconds($0, of: index) }
        record.interval = interval
        if let metric = rule.number { record.number = number(metric, of: index) }
        let steps = (interval ?? 0).multipliedReportingOverflow(by: Int64(index))
        let later = steps.overflow ? 0 : steps.partialValue
        switch rule.time {
        case .none: break
        case .clock(let span):
            record.reading = microseconds(span, of: index).map { isOwn(span) ? $0 : Self.sum($0, later) }
            guard let offset = rule.offset, let reading = record.reading else { break }
            let added = microseconds(offset, of: index)
            // In a list, a record that lacks the offset has null for it.
            let isLacking = isOwn(offset) || value(offset.metric, in: common) == nil
            record.reading = added.map { Self.sum(reading, $0) } ?? (isLacking ? reading : nil)
        case .age(let span):
            record.age = microseconds(span, of: index).map { isOwn(span) ? $0 : Self.sum($0, 0 &- later) }
        }
        return record
    }

    /// The digest of a record's own values only: the records beside it differ between downloads.
    private func digest(of index: Int) -> Int64 {
        var digest = RecordDigest()
        if records.indices.contains(index) { for sample in records[index] { digest.add(sample) } }
        return digest.value
    }

    /// The place of the payload in a download by blocks; `newest` is the time of the newest stored record.
    func block(after newest: Timestamp?) -> DownloadFacts.Block? {
        guard rule.isBlock || rule.index != nil else { return nil }
        var block = DownloadFacts.Block(count: count, total: rule.total.flatMap { integer($0, in: common) })
        guard case .age(let span) = rule.time, let age = microseconds(span, of: 0), let newest, let index = rule.index,
            let first = integer(index, in: common), let interval = rule.interval.flatMap({ microseconds($0, of: 0) }),
            interval > 0, RecordTracker.isPlausible(first), age >= 0
        else { return block }
        // The first record that is later than the newest stored one by more than half an interval.
        let start = Self.sum(received.microseconds, -age)
        let later = Self.sum(Self.sum(newest.microseconds, interval / 2), -start)
        block.next = later < 0 ? first : Self.sum(first, later / interval + 1)
        return block
    }

    private func isOwn(_ span: RecordRule.Span) -> Bool { rule.repeated.contains(span.metric) }

    /// A number, counted on from the payload's first record unless each record has its own.
    private func number(_ metric: Int, of index: Int) -> Int64? {
        guard !rule.repeated.contains(metric) else {
            return records.indices.contains(index) ? integer(metric, in: records[index]) : nil
        }
        return integer(metric, in: common).map { Self.sum($0, Int64(index)) }
    }

    private func value(_ metric: Int, in samples: [Sample]) -> SampleValue? {
        samples.last { $0.metric == metric }?.value
    }

    private func integer(_ metric: Int, in samples: [Sample]) -> Int64? {
        guard case .integer(let number) = value(metric, in: samples) else { return nil }
        return number
    }

    /// The microseconds of a time or a duration; `nil` for an unknown or impossible one.
    private func microseconds(_ span: RecordRule.Span, of index: Int) -> Int64? {
        let samples = isOwn(span) && records.indices.contains(index) ? records[index] : common
        switch value(span.metric, in: samples) {
        case .integer(let number): return Self.product(number, span.unit)
        case .real(let number):
            let seconds = number * Double(span.unit.components.seconds) + number * Self.fraction(span.unit)
            return abs(seconds) < 1e11 ? Int64(seconds * 1_000_000) : nil
        case .text(let date): return Timestamp(rfc3339: Array(date.utf8) + [UInt8(ascii: "Z")])?.microseconds
        case .boolean, .null, nil: return nil
        }
    }

    private static func fraction(_ unit: Duration) -> Double { Double(unit.components.attoseconds) / 1e18 }

    private static func product(_ number: Int64, _ unit: Duration) -> Int64? {
        let (seconds, attoseconds) = unit.components
        let micros = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        let (product, overflow) = number.multipliedReportingOverflow(by: micros)
        return overflow || abs(product / 4) > RecordTracker.latest ? nil : product
    }

    private static func sum(_ left: Int64, _ right: Int64) -> Int64 {
        let (sum, overflow) = left.addingReportingOverflow(right)
        return overflow ? left : sum
    }
}

/// The digest of a record's contents, which is stored.
struct RecordDigest {
    private var hash = StableHash()

    var value: Int64 { Int64(bitPattern: hash.value) }

    mutating func add(_ octets: Span<UInt8>) {
        for index in octets.indices { add(octets[index]) }
    }

    mutating func add(_ sample: Sample) {
        add(UInt64(clamping: sample.metric))
        switch sample.value {
        case .integer(let number): add(UInt64(bitPattern: number))
        case .real(let number): add(number.bitPattern)
        case .boolean(let isTrue): add(isTrue ? 1 : 0 as UInt64)
        case .text(let text): for octet in text.utf8 { add(octet) }
        case .null: add(0xFF as UInt8)
        }
    }

    private mutating func add(_ number: UInt64) {
        for shift in stride(from: 0, to: 64, by: 8) { add(UInt8(truncatingIfNeeded: number >> UInt64(shift))) }
    }

    private mutating func add(_ octet: UInt8) {
        hash.add(octet)
    }
}
