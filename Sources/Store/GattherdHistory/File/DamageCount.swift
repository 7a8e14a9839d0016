/// Counts findings of damage, because the check at opening does not detect all damage.
struct DamageCount {
    /// The time without damage after which the count restarts.
    private static let memory = Duration.seconds(3600)

    private var count = 0
    private var last: ContinuousClock.Instant?

    mutating func add(at now: ContinuousClock.Instant) {
        if let last, now - last >= Self.memory { count = 0 }
        count += 1
        last = now
    }

    /// True if reopening the file would not help.
    var isRepeated: Bool { count > 1 }
}
