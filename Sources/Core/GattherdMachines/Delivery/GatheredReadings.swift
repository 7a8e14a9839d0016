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
    /// The number of waiting readings from which none waits for others.
    static let maximumWaiting = 2048

    /// The waiting readings of a stream.
    private struct Group {
        var count = 0
        var bytes = 0
        var due = Duration.zero

        var isFull: Bool { count >= maximumReadings || bytes >= maximumBytes }
    }

    private var groups: [Group] = []
    private var numbers: [StreamKey: Int] = [:]
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
        numbers[stream] = groups.count
        groups.append(Group())
        return groups.count - 1
    }

    private mutating func add(_ reading: JournalReading, to number: Int, due: Duration) {
        guard groups.indices.contains(number) else { return }
        groups[number].due = groups[number].count == 0 ? due : min(groups[number].due, due)
        groups[number].count += 1
        groups[number].bytes += reading.size
        waiting += 1
    }

    /// Removes a reading that is sent.
    mutating func remove(_ reading: JournalReading, from number: Int) {
        guard groups.indices.contains(number), groups[number].count > 0 else { return }
        groups[number].count -= 1
        groups[number].bytes -= reading.size
        waiting -= 1
    }

    /// True if no stream gathers readings.
    var isEmpty: Bool { numbers.isEmpty }

    /// Ends the group of a stream, because a later reading is not gathered; its readings are due.
    ///
    /// Readings that are gathered after that one form another group, so that no message has readings from both sides.
    mutating func end(_ stream: StreamKey) {
        if let number = numbers.removeValue(forKey: stream) { groups[number].due = .zero }
    }

    /// Makes all waiting readings due.
    mutating func endAll() {
        for number in groups.indices { groups[number].due = .zero }
    }

    /// The number of waiting readings of a group.
    func count(_ number: Int) -> Int { groups.indices.contains(number) ? groups[number].count : 0 }

    /// True if the group's readings are due.
    func isDue(_ number: Int, at now: Duration) -> Bool {
        guard groups.indices.contains(number) else { return false }
        return isDue(groups[number], at: now)
    }

    private func isDue(_ group: Group, at now: Duration) -> Bool {
        group.count > 0 && (group.due <= now || group.isFull || waiting >= Self.maximumWaiting)
    }

    /// The number of messages that are due.
    func messages(at now: Duration) -> Int {
        guard waiting > 0 else { return 0 }
        return groups.reduce(0) { count, group in
            isDue(group, at: now) ? count + (group.count + Self.maximumReadings - 1) / Self.maximumReadings : count
        }
    }

    /// The time after `now` at which the next readings are due.
    func nextDue(after now: Duration) -> Duration? {
        guard waiting > 0 else { return nil }
        return groups.lazy.filter { $0.count > 0 && $0.due > now }.map(\.due).min()
    }
}
