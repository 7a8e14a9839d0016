public import GattherdModel

/// A message of the delivery: one reading, or several of one stream in journal order.
public enum DeliveryMessage: Hashable, Sendable {
    case reading(JournalReading)
    /// Readings that are published as one array; at least one.
    case batch([JournalReading])

    public var readings: [JournalReading] {
        switch self {
        case .reading(let reading): [reading]
        case .batch(let readings): readings
        }
    }

    /// The number of readings.
    public var count: Int {
        switch self {
        case .reading: 1
        case .batch(let readings): readings.count
        }
    }
}

/// The name of a stream among all devices.
struct StreamKey: Hashable, Sendable {
    let device: String
    let stream: String

    init(_ reading: JournalReading) {
        device = reading.stream.device
        stream = reading.stream.stream
    }
}

/// The unsent readings of streams whose readings are published in batches: how many there are, and when they are due.
///
/// A batch is due a fixed time after its first reading arrived, or when it is full. If very many readings wait, all are
/// due.
struct GatheredReadings: Sendable {
    /// The limits of one message.
    static let maximumReadings = 100
    static let maximumBytes = 32 << 10
    /// The number of waiting readings from which on new ones are sent without waiting for others.
    static let maximumWaiting = 2048
    /// The number of streams beyond which those without waiting readings are forgotten.
    static let maximumStreams = 4096

    /// The waiting readings of a stream; at least one.
    struct Group {
        var count = 0
        var bytes = 0
        var due = Duration.zero

        var isFull: Bool { count >= maximumReadings || bytes >= maximumBytes }
    }

    /// The groups by number; a number is never used for another group.
    private(set) var groups: [Int: Group] = [:]
    /// The numbers of the streams' newest groups.
    private(set) var numbers: [StreamKey: Int] = [:]
    private var nextNumber = 0
    /// The number of waiting readings.
    private(set) var waiting = 0

    /// Adds a reading; returns the number of its stream's group.
    mutating func add(_ reading: JournalReading, due: Duration) -> Int {
        let number = number(of: StreamKey(reading))
        add(reading, to: number, due: due)
        return number
    }

    /// Adds a reading again that was removed before; it is due at once.
    mutating func putBack(_ reading: JournalReading, to number: Int) {
        add(reading, to: number, due: .zero)
    }

    private mutating func number(of stream: StreamKey) -> Int {
        if let number = numbers[stream] { return number }
        // Devices come and go, so the streams of old ones must not stay.
        if numbers.count >= Self.maximumStreams { numbers = numbers.filter { groups[$0.value] != nil } }
        defer { nextNumber += 1 }
        numbers[stream] = nextNumber
        return nextNumber
    }

    private mutating func add(_ reading: JournalReading, to number: Int, due: Duration) {
        var group = groups[number] ?? Group(due: due)
        group.due = min(group.due, due)
        group.count += 1
        group.bytes += reading.size
        groups[number] = group
        waiting += 1
    }

    /// Removes a reading that is sent; returns the number of readings of its group that still wait.
    @discardableResult
    mutating func remove(_ reading: JournalReading, from number: Int) -> Int {
        guard var group = groups[number] else { return 0 }
        group.count -= 1
        group.bytes -= reading.size
        groups[number] = group.count > 0 ? group : nil
        waiting -= 1
        return group.count
    }

    /// True if no stream gathers readings.
    var isEmpty: Bool { numbers.isEmpty }

    /// Ends the group of a stream, because a later reading is not gathered; its readings are due.
    ///
    /// Readings that are gathered after the later reading form another group. So no message has readings from before
    /// and after it.
    mutating func end(_ stream: StreamKey) {
        if let number = numbers.removeValue(forKey: stream) { groups[number]?.due = .zero }
    }

    /// Makes all waiting readings due.
    mutating func endAll() {
        for number in groups.keys { groups[number]?.due = .zero }
    }

    /// The number of waiting readings of a group.
    func count(_ number: Int) -> Int { groups[number]?.count ?? 0 }

    /// True if the group's readings are due.
    func isDue(_ number: Int, at now: Duration) -> Bool {
        groups[number].map { isDue($0, at: now) } ?? false
    }

    private func isDue(_ group: Group, at now: Duration) -> Bool {
        group.due <= now || group.isFull || waiting >= Self.maximumWaiting
    }

    /// The number of messages that are due.
    func messages(at now: Duration) -> Int {
        guard waiting > 0 else { return 0 }
        return groups.values.reduce(0) { count, group in
            isDue(group, at: now) ? count + (group.count + Self.maximumReadings - 1) / Self.maximumReadings : count
        }
    }

    /// The time after `now` at which the next readings are due.
    func nextDue(after now: Duration) -> Duration? {
        guard waiting > 0 else { return nil }
        return groups.values.lazy.map(\.due).filter { $0 > now }.min()
    }
}
