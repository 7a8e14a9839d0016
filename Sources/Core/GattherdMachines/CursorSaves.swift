/// The saves of an output's cursor: which one is due, and when.
///
/// At most one save is pending. A cursor that has moved little waits for the interval.
/// After a failure every cursor waits for the pause.
package struct CursorSaves: Hashable, Sendable {
    private let interval: Duration
    private let count: Int64
    private let pause: Duration
    /// The last saved cursor.
    private var saved: Int64 = 0
    private var isPending = false
    /// The end of the interval after the last save.
    package private(set) var intervalEnd = Duration.zero
    /// The end of the pause after a failure.
    private var notBefore = Duration.zero
    /// True if the last save failed.
    package private(set) var hasFailed = false

    /// - Parameters:
    ///   - interval: The shortest time between two saves, unless the cursor has passed `count` entries.
    ///   - count: The number of entries after which the cursor is saved at once.
    ///   - pause: The pause after a failure.
    package init(interval: Duration, count: Int64 = .max, pause: Duration) {
        (self.interval, self.count, self.pause) = (interval, count, pause)
    }

    /// Records the cursor that the journal has.
    package mutating func loaded(_ cursor: Int64) {
        saved = cursor
    }

    /// Records the answer to the pending save.
    package mutating func saved(_ cursor: Int64) {
        (isPending, hasFailed) = (false, false)
        saved = max(saved, cursor)
    }

    /// Records that the pending save failed.
    package mutating func failed(at now: Duration) {
        (isPending, hasFailed) = (false, true)
        (intervalEnd, notBefore) = (now + pause, now + pause)
    }

    package func isSaved(_ cursor: Int64?) -> Bool {
        cursor.map { $0 <= saved } ?? true
    }

    /// The time at which to save the cursor; `nil` if it is saved, or a save is pending.
    package func time(of cursor: Int64?) -> Duration? {
        guard !isPending, let cursor, cursor > saved else { return nil }
        return cursor - saved >= count ? notBefore : intervalEnd
    }

    /// True if no save is pending.
    package var isIdle: Bool { !isPending }

    /// Returns the cursor if it is to be saved now; the answer must follow.
    package mutating func start(_ cursor: Int64?, at now: Duration) -> Int64? {
        guard let time = time(of: cursor), now >= time else { return nil }
        intervalEnd = now + interval
        return startLast(cursor)
    }

    /// Returns the cursor if it is not saved, without waiting for the interval; the answer must follow.
    package mutating func startLast(_ cursor: Int64?) -> Int64? {
        guard time(of: cursor) != nil else { return nil }
        isPending = true
        return cursor
    }
}
