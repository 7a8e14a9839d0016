/// The time until which nothing waits to be delivered.
///
/// While entries come all the time, something may always be under way. So the newest entry of a moment is remembered
/// until it is delivered: from then on, all that waits came after that moment.
package struct DeliveryCompletion: Sendable {
    /// The last known such time; `nil` if there was none in this run.
    package private(set) var until: Duration?
    /// The entry whose delivery moves the time, and the moment at which it was the newest.
    private var next: (seq: Int64, since: Duration)?

    package init() {}

    /// Compares what is delivered with the newest committed number; call this before the number changes.
    ///
    /// - Parameters:
    ///   - head: The newest committed number.
    ///   - now: The time.
    ///   - isDelivered: Returns true if nothing waits up to a number.
    package mutating func update(to head: Int64, at now: Duration, isDelivered: (Int64) -> Bool) {
        guard !isDelivered(head) else {
            (until, next) = (now, nil)
            return
        }
        if let next {
            guard isDelivered(next.seq) else { return }
            until = next.since
        }
        next = (head, now)
    }
}
