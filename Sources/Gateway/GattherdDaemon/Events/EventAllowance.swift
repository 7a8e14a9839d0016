import GattherdModel

/// Keeps one source of events from taking the room of all others.
///
/// A device that cannot keep its link, or somebody who sets a control again and again, may cause an event every
/// 5 s for ever, after a burst of 500. The next event says how many were left out before it.
struct EventAllowance: Sendable {
    /// The origin of an event: one kind of a device, or of the gateway.
    struct Source: Hashable, Sendable {
        let device: String?
        let kind: String
        /// The member `state`: an outage of the broker must not be hidden by requests that it brings.
        let state: String?

        init(device: String?, kind: String, _ members: KeyValuePairs<String, SampleValue?>) {
            self.device = device
            self.kind = kind
            state =
                members.lazy.compactMap { key, value in
                    if key == "state", case .text(let state)? = value { state } else { nil }
                }
                .first
        }
    }

    private struct Bucket: Sendable {
        var tokens = EventAllowance.burst
        var filled: Duration
        var leftOut = 0

        mutating func refill(at now: Duration) {
            let elapsed = max(0, (now - filled) / EventAllowance.interval)
            tokens = min(EventAllowance.burst, tokens + elapsed)
            filled = now
        }
    }

    static let burst = 500.0
    static let interval = Duration.seconds(5)
    /// Sources that are remembered at once.
    static let capacity = 4096

    private var buckets: [Source: Bucket] = [:]

    /// Sources that are remembered now.
    var count: Int { buckets.count }

    /// Decides about one event at the monotonic time `now`.
    ///
    /// - Returns: How many events of the source were left out before it; `nil` when it is left out too.
    mutating func admit(_ source: Source, at now: Duration) -> Int? {
        if buckets.count >= Self.capacity, buckets[source] == nil { forget(at: now) }
        var bucket = buckets[source] ?? Bucket(filled: now)
        defer { buckets[source] = bucket }
        bucket.refill(at: now)
        guard bucket.tokens >= 1 else {
            bucket.leftOut += 1
            return nil
        }
        bucket.tokens -= 1
        defer { bucket.leftOut = 0 }
        return bucket.leftOut
    }

    /// Forgets the sources that are full again, or else all: a burst more is better than no bound.
    private mutating func forget(at now: Duration) {
        for source in Array(buckets.keys) {
            buckets[source]?.refill(at: now)
            if let bucket = buckets[source], bucket.tokens >= Self.burst, bucket.leftOut == 0 { buckets[source] = nil }
        }
        if buckets.count >= Self.capacity { buckets.removeAll() }
    }
}
