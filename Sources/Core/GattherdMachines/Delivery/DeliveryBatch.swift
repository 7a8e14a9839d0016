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

        var isFull: Bool {
            readings.count >= GatheredReadings.maximumReadings || bytes >= GatheredReadings.maximumBytes
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

    /// True if the group has no open message, or one without readings.
    func isEmpty(_ group: Int) -> Bool { openMessages[group]?.readings.isEmpty ?? true }

    /// True if the open message of the group must not get more readings.
    func isFull(_ group: Int) -> Bool { openMessages[group]?.isFull ?? false }

    /// Appends a message of one reading.
    mutating func append(_ reading: JournalReading) {
        messages.append(.reading(reading))
    }

    /// Opens a message after the existing ones.
    mutating func open(_ group: Int) {
        openMessages[group] = OpenMessage(index: messages.count)
        messages.append(.batch([]))
    }

    /// Adds a reading to the open message of its group.
    mutating func add(_ reading: JournalReading, to group: Int) {
        openMessages[group]?.readings.append(reading)
        openMessages[group]?.bytes += reading.size
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
