import GattherdModel

/// Limits the rate of events of each source, so that no source displaces the others.
///
/// A device with an unstable link, or a client that sets a control continuously, may cause a burst of 500 events, then
/// one event every 5 s. The next event contains the number of events left out before it.
struct EventAllowance: Sendable {
    /// The source of an event: one kind of event of a device or of the gateway.
    struct Source: Hashable, Sendable {
        let device: String?
        let kind: String
        /// The member `state`, as part of the key: requests during a broker outage must not hide the outage.
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
    /// The maximum number of sources in memory.
    static let capacity = 4096

    private var buckets: [Source: Bucket] = [:]

    /// The number of sources in memory.
    var count: Int { buckets.count }

    /// Admits or suppresses one event at the monotonic time `now`.
    ///
    /// - Returns: The number of events of the source left out before this one; `nil` if this one is left out as well.
    mutating func admit(_ source: Source, at now: Duration) -> Int? {
        if buckets.count >= Self.capacity, buckets[source] == nil { removeFull(at: now) }
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

    /// Removes the sources whose allowance is full, or else all: one more burst is better than unbounded memory.
    private mutating func removeFull(at now: Duration) {
        for source in Array(buckets.keys) {
            buckets[source]?.refill(at: now)
            if let bucket = buckets[source], bucket.tokens >= Self.burst, bucket.leftOut == 0 { buckets[source] = nil }
        }
        if buckets.count >= Self.capacity { buckets.removeAll() }
    }
}
