/// The memory of batches that failed soon although the receiver had accepted smaller ones.
///
/// A network may cut large requests at once, and a receiver that is down fails as soon. A failure right after growth
/// suggests the former, and so do several failures in a row. The size that failed after growth is tried again ever more
/// seldom, because each such failure interrupts the delivery.
struct BatchCeiling: Sendable {
    /// The number of failures in a row that suggest smaller batches.
    private static let suspiciousFailures = 3
    private static let longestPatience = 10_000

    /// The size that the receiver has accepted, unless later failures contradict.
    private var accepted = 0
    /// The smallest size that failed after growth; `nil` once a batch of this size is accepted.
    private var failed: Int?
    /// The number of failures since the last answer of the receiver.
    private var failures = 0
    /// The number of full batches after which a batch of the failed size is tried.
    private var patience = 1
    /// The number of full batches accepted since the last failure that made batches smaller.
    private var fullBatches = 0

    /// Records that the receiver accepted a batch.
    mutating func accept(_ count: Int) {
        failures = 0
        accepted = max(accepted, count)
        if let failed, count >= failed { (self.failed, patience) = (nil, 1) }
    }

    /// Records that the receiver refused a batch, which it therefore has received.
    mutating func refuse() { failures = 0 }

    /// Records a full batch if it is one; returns true if batches of twice the size may be tried.
    mutating func allowsGrowth(from limit: Int, after count: Int) -> Bool {
        guard let failed, limit >= failed / 2 else { return true }
        guard count >= limit else { return false }
        fullBatches += 1
        guard fullBatches >= patience else { return false }
        fullBatches = 0
        return true
    }

    /// Records a batch that failed soon; returns true if the next ones should be smaller.
    mutating func fail(_ count: Int) -> Bool {
        failures += 1
        let hasGrown = failures == 1 && accepted > 0 && count > accepted
        if hasGrown {
            failed = min(failed ?? count, count)
            patience = min(patience * 4, Self.longestPatience)
        }
        guard hasGrown || failures >= Self.suspiciousFailures else { return false }
        (accepted, fullBatches) = (min(accepted, count / 2), 0)
        return true
    }
}
