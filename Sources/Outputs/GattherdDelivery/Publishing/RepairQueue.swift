import GattherdMachines
import GattherdModel

/// The readings that are still to be published again, at the pace of a backlog.
///
/// Time is passed in, counted from any fixed instant.
struct RepairQueue {
    /// The number of refusals after which a reading is given up; the pauses double, to about a minute in all.
    private static let maximumRefusals = 6

    private let retryPause: Duration
    private var pace: TokenBucket
    /// The next reading is the last one.
    private var waiting: [RepeatedReading] = []
    /// The time before which nothing is published, because the broker was busy.
    private var pausedUntil = Duration.zero

    init(_ options: DeliveryMachine.Options) {
        retryPause = options.retryPause
        pace = options.pace
    }

    var isEmpty: Bool { waiting.isEmpty }

    /// Replaces the waiting readings.
    mutating func start(_ readings: [JournalReading]) {
        waiting = readings.reversed().map { RepeatedReading(reading: $0) }
    }

    /// Ends the session.
    mutating func removeAll() {
        waiting = []
        pausedUntil = .zero
    }

    /// Dequeues the next reading that is still missing; `nil` if none is, or before ``nextTime(at:)``.
    mutating func dequeue(
        at now: Duration,
        where isMissing: (JournalReading) -> Bool
    ) -> RepeatedReading? {
        while let item = waiting.last, !isMissing(item.reading) { waiting.removeLast() }
        guard !waiting.isEmpty, nextTime(at: now) <= now else { return nil }
        pace.spend(1)
        return waiting.popLast()
    }

    /// The time at which the next reading may be published; `now` if it may be published now.
    mutating func nextTime(at now: Duration) -> Duration {
        let refill = pace.allowance(for: 1, at: now) > 0 ? now : now + pace.pause(for: waiting.count, at: now)
        return max(pausedUntil, refill)
    }

    /// Appends a refused reading behind the others, after a pause that doubles with each refusal.
    ///
    /// - Returns: False if the reading is given up.
    mutating func retry(_ item: RepeatedReading, at now: Duration) -> Bool {
        guard item.refusals < Self.maximumRefusals else { return false }
        pausedUntil = max(pausedUntil, now + retryPause * (1 << item.refusals))
        waiting.insert(RepeatedReading(reading: item.reading, refusals: item.refusals + 1), at: 0)
        return true
    }
}

/// A reading that is published again to a broker that has lost its retained messages.
struct RepeatedReading {
    let reading: JournalReading
    /// The number of times that the broker has refused it.
    var refusals = 0
}
