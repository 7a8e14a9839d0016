import GattherdMQTT
import GattherdMachines

/// Bounds how long one reading is tried again that the broker refuses without a reason.
///
/// The reading that ends a hold goes alone, so that it is enough to remember one.
struct UnexplainedRefusals {
    private static let patience = Duration.seconds(60)

    private var seq: Int64?
    private var since = Duration.zero

    mutating func verdict(_ reason: MQTTReason, of seq: Int64, at now: Duration) -> PublishOutcome.Verdict {
        guard reason.isVague else { return reason.verdict }
        if self.seq != seq { (self.seq, since) = (seq, now) }
        return now - since < Self.patience ? reason.verdict : .refused(reason.words)
    }
}
