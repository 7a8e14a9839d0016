/// The pauses between reads of a busy connection, or of busy sockets.
///
/// Waking up costs more than handling a message. A connection with frequent single messages is therefore read after a
/// pause in which several collect. A quiet connection and one with a backlog are read at once.
package struct ReadPacing {
    /// The shortest pause; waking up after a shorter one costs more than it saves.
    static let shortest = Duration.milliseconds(2)
    /// The approximate number of messages that collect during a pause.
    ///
    /// A socket holds a third more small messages. With a longer pause some would wait in the bus for the next read.
    static let wanted = 125
    /// A connection is busy after this number of reads with less than this time between them.
    private static let (soon, often) = (Duration.milliseconds(20), 8)
    /// The fewest messages in one pause that justify the next pause.
    private static let worthwhile = 2
    /// The number of long messages in a socket that the bus has filled again by a quarter, and the interval of checks.
    ///
    /// A bus with a backlog refills the socket by a quarter at once; then dbus-daemon stops. Some pauses are cut short
    /// to detect a backlog.
    private static let (refillCount, checkInterval) = (20, Duration.seconds(1))

    /// The longest delay of a message.
    private let longest: Duration
    private var lastRead: SuspendingClock.Instant?
    private var soonReads = 0
    private var wasPaused = false
    /// The recent average time between messages.
    private var spacing = Duration.zero
    /// The length of the pause that was cut short for a check; `nil` if none was.
    private var checkPause: Duration?
    /// The messages found by several checks, and their duration; each check halves the weight of those before.
    private var findings = (count: 0, elapsed: Duration.zero)
    /// The total duration of the checks since the last decision.
    private var checkTime = Duration.zero
    private var nextCheck: SuspendingClock.Instant?

    /// Creates the pacing of an idle connection.
    package init(longest: Duration) {
        self.longest = max(longest, Self.shortest)
    }

    /// Records that `count` messages were read; returns the pause before the next read.
    ///
    /// - Parameters:
    ///   - count: The number of messages; 0 only ends a check. Of several sockets that are read together, the number in
    ///     the fullest one, because each must hold those of a pause.
    ///   - total: The number in all sockets; `nil` for one socket.
    ///   - isAll: True if no more were waiting.
    ///   - now: The time.
    /// - Returns: The pause; `nil` if the next read should be as soon as messages come.
    package mutating func read(
        _ count: Int,
        of total: Int? = nil,
        isAll: Bool,
        at now: SuspendingClock.Instant
    ) -> Duration? {
        if let checkPause { return check(for: checkPause, count, isAll: isAll, at: now) }
        guard count > 0 else { return nil }
        let elapsed = lastRead.map { now - $0 } ?? Self.soon
        lastRead = now
        updateSpacing(min(elapsed, longest) / count)
        if !wasPaused { soonReads = elapsed < Self.soon ? soonReads + 1 : 0 }
        if wasPaused, (total ?? count) < Self.worthwhile { soonReads = 0 }
        let isUsual = wasPaused && spacing * count < elapsed * 2
        checkPause = isUsual && isAll && count >= Self.refillCount && now >= nextCheck ?? now ? Self.shortest : nil
        wasPaused = soonReads >= Self.often && isAll
        return checkPause ?? (wasPaused ? pause : nil)
    }

    /// Updates the average time between messages.
    ///
    /// A single late message has little weight, because after a stall many arrive together.
    private mutating func updateSpacing(_ newest: Duration) {
        let isLate = wasPaused && newest > spacing
        spacing = isLate ? min((spacing * 3 + newest) / 4, spacing * 2) : (spacing + newest) / 2
    }

    /// The pause, of which a whole number fits into the longest one.
    private var pause: Duration {
        let wanted = min(max(spacing * Self.wanted, Self.shortest), longest)
        return max(longest / Int((longest / wanted).rounded(.up)), Self.shortest)
    }

    /// Starts another check, as long as much more is waiting than arrives.
    ///
    /// A check may find nothing because the bus had no processor time yet, most likely after a check that found some.
    private mutating func check(
        for span: Duration,
        _ count: Int,
        isAll: Bool,
        at now: SuspendingClock.Instant
    ) -> Duration? {
        let elapsed = lastRead.map { now - $0 } ?? .zero
        findings = (findings.count / 2 + count, findings.elapsed / 2 + elapsed)
        checkTime += elapsed
        lastRead = now
        let isMuch = spacing * findings.count > findings.elapsed * 2
        let next = isMuch && count >= Self.refillCount ? Self.shortest : span * 2
        // A backlog does not last so long: more messages come than before.
        let isLong = checkTime > Self.checkInterval
        checkPause = isAll && !isLong && next < (isMuch ? pause : min(pause, Self.shortest * 3)) ? next : nil
        if let checkPause { return checkPause }
        if isLong { spacing = min(spacing, findings.elapsed / max(1, findings.count)) }
        (findings, checkTime) = ((0, .zero), .zero)
        nextCheck = isLong ? now : now + Self.checkInterval
        wasPaused = isAll
        return isAll ? pause : nil
    }
}
