/// Counts how often damage was found, because the check at opening does not see all of it.
struct DamageCount {
    /// Whoever finds no damage for so long begins anew.
    private static let memory = Duration.seconds(3600)

    private var count = 0
    private var last: ContinuousClock.Instant?

    mutating func add(at now: ContinuousClock.Instant) {
        if let last, now - last >= Self.memory { count = 0 }
        count += 1
        last = now
    }

    /// Another opening would not help.
    var isRepeated: Bool { count > 1 }
}
