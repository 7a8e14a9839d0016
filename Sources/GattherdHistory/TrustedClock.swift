import GattherdModel

/// The wall clock, as far as something that cannot be undone may rest on it.
///
/// A clock that jumps ahead is not believed for an hour, and one that nobody has set for a day: time for it to be
/// set right before everything counts as old. One that jumps back is believed at once, for then nothing is lost.
struct TrustedClock {
    private static let tolerance: Int64 = 3_600_000_000

    private var patience = Duration.seconds(3600)
    /// What the wall clock is ahead of the steady one, in microseconds.
    private var offset: Int64?
    /// When the steady clock was first left behind.
    private var suspectSince: Duration?

    /// A clock that is right at the start.
    init() {}

    /// - Parameters:
    ///   - isSet: The clock is right at the start.
    ///   - newest: An instant that is past; `nil` when none is known.
    init(isSet: Bool, newest: Int64?) {
        guard !isSet, let newest else { return }
        patience = .seconds(86_400)
        offset = newest
    }

    /// The time that may be relied on.
    ///
    /// - Parameters:
    ///   - wall: What the wall clock says, in microseconds since 1970.
    ///   - steady: What a clock says that nobody sets.
    /// - Returns: `wall`, or what it should be since it was last believed.
    mutating func time(_ wall: Int64, steady: Duration) -> Int64 {
        let elapsed = Timestamp(microseconds: 0).advanced(by: steady).microseconds
        let found = wall &- elapsed
        guard let trusted = offset, found > trusted &+ Self.tolerance else {
            offset = found
            suspectSince = nil
            return wall
        }
        let since = suspectSince ?? steady
        suspectSince = since
        guard steady - since >= patience else { return trusted &+ elapsed }
        offset = found
        suspectSince = nil
        return wall
    }
}
