/// When a busy connection is read next.
///
/// To wake up costs more than to handle a message. So when messages come one by one and fast, some are let come before
/// the next read. A connection that is quiet is read at once, and so is one that has more than can be handled.
struct ReadPacing {
    /// A shorter pause gathers too little to be worth its end.
    static let shortest = Duration.milliseconds(2)
    /// So many messages are let come, about: a socket holds a third more small ones, and what it cannot hold
    /// would wait in the bus for the next pause to end.
    static let wanted = 125
    /// Reads that follow this soon one after the other, so many times, show that the connection is busy.
    private static let (soon, often) = (Duration.milliseconds(20), 8)
    /// So many messages in one pause are worth the next one.
    private static let worthwhile = 2
    /// Not more are in a socket that the bus has filled again by a quarter, with long messages.
    ///
    /// A bus that has more than the socket takes does so at once, and dbus-daemon then no further. So that this does not
    /// pass for all that comes, a pause is cut short now and then to look.
    private static let (quarter, lookout) = (20, Duration.seconds(1))

    /// What a message may be late for the sake of others.
    private let longest: Duration
    private var lastRead: SuspendingClock.Instant?
    private var soonReads = 0
    private var wasPaused = false
    /// The time between messages lately.
    private var spacing = Duration.zero
    /// The pause that was cut short to look; `nil` when none was.
    private var look: Duration?
    /// What was there at the last of several looks, and for how long they went on: with each look what was before counts
    /// half as much.
    private var found = (count: 0, elapsed: Duration.zero)
    /// How long the looks have gone on.
    private var looking = Duration.zero
    private var nextLook: SuspendingClock.Instant?

    init(longest: Duration) {
        self.longest = max(longest, Self.shortest)
    }

    /// Notes that `count` messages were read, and says how long to wait before the next read.
    ///
    /// - Parameters:
    ///   - count: How many there were; 0 for none, which changes nothing but that a look is over.
    ///   - isAll: No more was there.
    ///   - now: The time.
    /// - Returns: `nil` when the next read should be as soon as there is something.
    mutating func read(_ count: Int, isAll: Bool, at now: SuspendingClock.Instant) -> Duration? {
        if let look { return looked(for: look, count, isAll: isAll, at: now) }
        guard count > 0 else { return nil }
        let elapsed = lastRead.map { now - $0 } ?? Self.soon
        lastRead = now
        note(min(elapsed, longest) / count)
        if !wasPaused { soonReads = elapsed < Self.soon ? soonReads + 1 : 0 }
        if wasPaused, count < Self.worthwhile { soonReads = 0 }
        let isUsual = wasPaused && spacing * count < elapsed * 2
        look = isUsual && isAll && count >= Self.quarter && now >= nextLook ?? now ? Self.shortest : nil
        wasPaused = soonReads >= Self.often && isAll
        return look ?? (wasPaused ? pause : nil)
    }

    /// What was late once may come all together after a moment's stall, or with the next of many that speak in time with
    /// each other: it must not count for much.
    private mutating func note(_ newest: Duration) {
        let isLate = wasPaused && newest > spacing
        spacing = isLate ? min((spacing * 3 + newest) / 4, spacing * 2) : (spacing + newest) / 2
    }

    private var pause: Duration { min(max(spacing * Self.wanted, Self.shortest), longest) }

    /// Looks again and again as long as much more is there than comes.
    ///
    /// Who finds no more may have been too soon for a bus that has little of the processor, most likely so after having
    /// found some.
    private mutating func looked(
        for span: Duration,
        _ count: Int,
        isAll: Bool,
        at now: SuspendingClock.Instant
    ) -> Duration? {
        let elapsed = lastRead.map { now - $0 } ?? .zero
        found = (found.count / 2 + count, found.elapsed / 2 + elapsed)
        looking += elapsed
        lastRead = now
        let isMuch = spacing * found.count > found.elapsed * 2
        let next = isMuch && count >= Self.quarter ? Self.shortest : span * 2
        // What goes on for so long is hardly a backlog: more comes than before.
        let isLong = looking > Self.lookout
        look = isAll && !isLong && next < (isMuch ? pause : min(pause, Self.shortest * 3)) ? next : nil
        if let look { return look }
        if isLong { spacing = min(spacing, found.elapsed / max(1, found.count)) }
        (found, looking) = ((0, .zero), .zero)
        nextLook = isLong ? now : now + Self.lookout
        wasPaused = isAll
        return isAll ? pause : nil
    }
}
