import GattherdModel

/// Messages made of readings, in the order in which the readings were added.
///
/// A reading is a message of its own, or joins the open message of its group.
struct DeliveryBatch {
    /// A message to which readings of its group are still added.
    private struct OpenMessage {
        let index: Int
        var readings: [JournalReading] = []
        var bytes = 0

        mutating func add(_ reading: JournalReading) -> (isFirst: Bool, isFull: Bool) {
            readings.append(reading)
            bytes += reading.size
            let isFull = readings.count >= GatheredReadings.maximumReadings || bytes >= GatheredReadings.maximumBytes
            return (readings.count == 1, isFull)
        }
    }

    private(set) var messages: [DeliveryMessage] = []
    /// The number of readings in the batch that were published before.
    private(set) var again = 0
    let sentAt: Duration
    private var openMessages: [Int: OpenMessage] = [:]

    init(sentAt: Duration) {
        self.sentAt = sentAt
    }

    var hasOpenMessages: Bool { !openMessages.isEmpty }

    func isOpen(_ group: Int) -> Bool { openMessages[group] != nil }

    /// Appends a message of one reading.
    mutating func append(_ reading: JournalReading) {
        messages.append(.reading(reading))
    }

    /// Opens a message after the existing ones, with room for the expected number of readings.
    mutating func open(_ group: Int, expecting count: Int) {
        var message = OpenMessage(index: messages.count)
        message.readings.reserveCapacity(min(count, GatheredReadings.maximumReadings))
        openMessages[group] = message
        messages.append(.batch([]))
    }

    /// Adds a reading to the open message of its group.
    ///
    /// - Returns: `isFirst` if it is the message's first one, and `isFull` if the message must not get more.
    @discardableResult
    mutating func add(_ reading: JournalReading, to group: Int) -> (isFirst: Bool, isFull: Bool) {
        openMessages[group]?.add(reading) ?? (isFirst: false, isFull: false)
    }

    /// Counts one more reading that was published before.
    mutating func countAgain() {
        again += 1
    }

    /// Closes the message of a group; the group's next reading needs a new one.
    mutating func close(_ group: Int) {
        guard let open = openMessages.removeValue(forKey: group) else { return }
        messages[open.index] = .batch(open.readings)
    }

    mutating func closeAll() {
        for group in Array(openMessages.keys) { close(group) }
    }
}
