import GattherdModel

/// The wall clock, as far as something that cannot be undone may rest on it.
///
/// A clock that jumps ahead is not believed for an hour: time for it to be set right again before
/// everything counts as old. One that jumps back is believed at once, for then nothing is lost.
struct TrustedClock {
    private static let patience = Duration.seconds(3600)
    private static let tolerance: Int64 = 3_600_000_000

    /// What the wall clock is ahead of the steady one, in microseconds.
    private var offset: Int64?
    /// When the steady clock was first left behind.
    private var suspectSince: Duration?

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
        guard steady - since >= Self.patience else { return trusted &+ elapsed }
        offset = found
        suspectSince = nil
        return wall
    }
}
