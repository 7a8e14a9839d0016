import GattherdModel

/// The state of a stream's records, as far as a download depends on it.
public struct DownloadFacts: Hashable, Sendable {
    /// The last received block of records.
    public struct Block: Hashable, Sendable {
        /// The index of the first record that is not stored yet, by the block's own index and times.
        public var next: Int64?
        /// The number of records in the block.
        public var count: Int
        /// The number of records in the device.
        public var total: Int64?

        public init(next: Int64? = nil, count: Int, total: Int64? = nil) {
            (self.next, self.count, self.total) = (next, count, total)
        }
    }

    /// False while history cannot be read or written; the other values are meaningless then.
    public var isLoaded = true
    /// The number of requests so far, by which facts of an earlier one are recognised.
    public var requests = 0
    /// The number of the record from which a download continues, as the device numbers it.
    public var resumption: Int64?
    /// The time from which a download continues, in seconds by the device's clock.
    public var newest: Int64?
    /// The records of the current request, with duplicates.
    public var count = 0
    /// The new records of the current request.
    public var stored = 0
    /// The new records that the device has made since the start of the current request.
    public var live = 0
    /// True if ``hasHoles`` reveals every record that this host has lost.
    public var isAnchored = false
    /// True if the numbers restarted, lower ones may be missing, and no request for all records has begun since.
    public var isRestarted = false
    /// True if the numbers have reached the end of their field, so that later records have numbers from 0 on.
    public var isAtWrap = false
    /// The highest number that the field can hold; `nil` if numbers do not wrap.
    public var highest: Int64?
    /// True if the device has made the last record of the requested range, and maybe others after it.
    public var hasRangeEnd = false
    /// True if the device may have records from before its numbers have wrapped.
    public var hasWrapped = false
    /// True if numbers between received ones are missing.
    public var hasHoles = false
    /// True if this host has lost values since the start of the request, so that records may be missing.
    public var hasLosses = false
    public var block: Block?
    /// The number of payloads of the current request.
    public var payloads = 0

    public init() {}

    /// The facts that a tracker knows.
    public init(_ tracker: RecordTracker) {
        resumption = tracker.resumption.map { $0 & (tracker.highest ?? .max) }
        newest = tracker.requestTime
        (count, stored, live) = (tracker.count, tracker.stored, tracker.live)
        (isAnchored, isRestarted) = (tracker.isAnchored, tracker.isRestarted)
        (isAtWrap, hasHoles, hasLosses) = (tracker.isAtWrap, tracker.hasHoles, tracker.hasLosses)
        (highest, hasWrapped, hasRangeEnd) = (tracker.highest, tracker.hasWrapped, tracker.hasRangeEnd)
    }
}
