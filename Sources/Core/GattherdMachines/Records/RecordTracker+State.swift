public import GattherdModel

// The stored text: fields with a semicolon between them, numbers in decimal.
extension RecordTracker {
    /// The version of this format.
    private static let version = "3"

    /// Restores a tracker; with an unreadable state it starts from the beginning.
    ///
    /// - Parameters:
    ///   - rule: The metrics that number and date the records.
    ///   - state: The stored state.
    ///   - boot: The identifier of the gateway's boot.
    ///   - correction: The correction of the gateway's clock in the boot of the state.
    public init(_ rule: RecordRule, restoring state: String, boot: String = "", correction: Int64 = 0) {
        self.init(rule, boot: boot)
        let fields = state.split(separator: ";", omittingEmptySubsequences: false)
        // The list of records is there only if it is not empty.
        guard (10...11).contains(fields.count), fields[0] == Self.version,
            let generation = Int64(fields[1])
        else { return }
        self.generation = generation
        (done, top, before) = (Mark(fields[2]), Mark(fields[5]), Mark(fields[6]))
        progress = RecordProgress(first: Int64(fields[3]), front: Mark(fields[4]))
        clock = DeviceClock(fields[7])
        // A damaged correction would make differences of times overflow.
        let isPlausible = correction.magnitude <= Self.latest.magnitude
        defer { if boot.isEmpty || fields[9] != boot { leaveBoot(correction: isPlausible ? correction : 0) } }
        if fields.count == 11 {
            list = ListedRecords(fields[10].split(separator: ",").compactMap { UInt32($0, radix: 36) })
        }
        received = ReceivedRecords(fields[8].split(separator: ",").compactMap(ReceivedRecords.Run.init))
    }

    /// The state to store.
    public var state: String {
        let marks = [progress.front, top, before].map { $0?.text ?? "" }
        let start = [Self.version, "\(generation)", done?.text ?? "", progress.first.map { "\($0)" } ?? ""]
        let rest = [clock.text, received.runs.map(\.text).joined(separator: ","), boot]
        let digests = list.digests.map { String($0, radix: 36) }.joined(separator: ",")
        return (start + marks + rest + (digests.isEmpty ? [] : [digests])).joined(separator: ";")
    }
}

extension RecordMark {
    fileprivate init?(_ text: some StringProtocol) {
        let numbers = text.split(separator: ":").compactMap { Int64($0) }
        // The time of the receipt is there only if the record's time is uncertain.
        guard (4...5).contains(numbers.count), RecordTracker.numbers.contains(numbers[0]),
            numbers.dropFirst(2).allSatisfy({ $0.magnitude <= RecordTracker.latest.magnitude })
        else { return nil }
        self.init(number: numbers[0], digest: numbers[1], time: numbers[2], base: numbers[3])
        receipt = numbers.dropFirst(4).first
    }

    fileprivate var text: String { "\(number):\(digest):\(time):\(base)" + (receipt.map { ":\($0)" } ?? "") }
}

extension DeviceClock {
    /// Restores a clock from the number of earlier settings, and for each comparison an offset, a time and its base.
    fileprivate init(_ text: some StringProtocol) {
        let numbers = text.split(separator: ":").compactMap { Int64($0) }
        let count = (numbers.count - 1) / 3
        let isWhole = numbers.count == 1 + 3 * count && count > 0 && numbers.allSatisfy { $0.magnitude < 1 << 60 }
        guard isWhole, let settings = numbers.first.flatMap({ Int(exactly: $0) }),
            settings >= 0, (1...2).contains(count - settings)
        else {
            self.init()
            return
        }
        let pairs = stride(from: 1, to: numbers.count, by: 3).map { index in
            Comparison(offset: numbers[index], time: numbers[index + 1], base: numbers[index + 2])
        }
        self.init(earlier: Array(pairs.prefix(settings)), Array(pairs.dropFirst(settings)))
    }

    fileprivate var text: String {
        guard !comparisons.isEmpty else { return "" }
        return "\(earlier.count)" + (earlier + comparisons).map { ":\($0.offset):\($0.time):\($0.base)" }.joined()
    }
}

extension ReceivedRecords.Run {
    fileprivate init?(_ text: some StringProtocol) {
        let numbers = text.split(separator: ":").compactMap { Int64($0) }
        guard numbers.count == 3, numbers.allSatisfy(RecordTracker.isPlausible), numbers[0] <= numbers[1],
            numbers[2] > 0, (numbers[1] - numbers[0]).isMultiple(of: numbers[2])
        else { return nil }
        self.init(first: numbers[0], last: numbers[1], step: numbers[2])
    }

    fileprivate var text: String { "\(first):\(last):\(step)" }
}
