import GattherdModel

/// The choice of the records to request: by number, if the device can filter by it.
struct RequestChoice: Sendable {
    private let procedure: DownloadDescriptor.Procedure
    /// True if the device numbers its records.
    private let isNumbered: Bool
    /// True if the device filters by number, as far as known.
    private var canFilter = true
    /// True if the device filters by a range of numbers, as far as known.
    private var canFilterRange = true

    init(_ procedure: DownloadDescriptor.Procedure, isNumbered: Bool) {
        (self.procedure, self.isNumbered) = (procedure, isNumbered)
    }

    /// Returns the request for the records that are not stored yet.
    func next(after facts: DownloadFacts) -> RecordRequest {
        guard let number = facts.resumption else { return .all }
        return next(from: number, facts)
    }

    /// Returns the request for the records after a range that the device has gone beyond.
    func next(beyond range: ClosedRange<Int64>, _ facts: DownloadFacts) -> RecordRequest {
        // Records that were stored before do not move the resumption, so the same range would be requested without end.
        let number = facts.resumption.flatMap { $0 > range.lowerBound && range.contains($0) ? $0 : nil }
        return next(from: number ?? range.upperBound, facts)
    }

    private func next(from number: Int64, _ facts: DownloadFacts) -> RecordRequest {
        guard namesNumbers else { return .all }
        if case .accessControlPoint(let width) = procedure {
            guard canFilter, width > 0, fits(number, width) else { return .all }
            if facts.hasWrapped, let range = range(from: number, facts.highest) { return .within(range) }
        }
        return .from(number)
    }

    /// Returns the request for the records after the wrap of the numbers.
    func afterWrap(of facts: DownloadFacts) -> RecordRequest {
        range(from: 0, facts.highest).map { .within($0) } ?? .from(0)
    }

    /// Returns the request in place of one whose filter the device does not support.
    mutating func replacement(forUnsupported request: RecordRequest) -> RecordRequest {
        guard case .within(let range) = request else {
            canFilter = false
            return .all
        }
        canFilterRange = false
        return .from(range.lowerBound)
    }

    /// True if requests contain the number of a record.
    private var namesNumbers: Bool {
        switch procedure {
        case .accessControlPoint: true
        case .request(let template, _): template.contains(.next)
        case .blocks(let template, _, _): isNumbered && (template.contains(.index) || template.contains(.next))
        }
    }

    /// Returns the numbers from `number` on without those from before the numbers wrapped; `nil` for all numbers.
    ///
    /// A device whose numbers wrap stores fewer records than half of the numbers. Without an upper end, each link would
    /// first bring the same records from before the wrap, and one that ends early would bring nothing else.
    private func range(from number: Int64, _ highest: Int64?) -> ClosedRange<Int64>? {
        guard let highest, canFilterRange, case .accessControlPoint(let width) = procedure else { return nil }
        let half = highest / 2
        return number <= half && fits(number + half, width) ? number...number + half : nil
    }

    private func fits(_ number: Int64, _ width: Int) -> Bool { number >> Int64(8 * width) == 0 }
}
