/// The size of batches: small at first, doubled with each fast success.
///
/// A refusal halves the size until the refused entry is alone; a time-out halves it until a slow receiver manages it.
/// Failures without a time-out halve it as ``BatchCeiling`` decides.
struct BatchSizer: Sendable {
    private let most: Int
    private let maximumRefusals: Int
    private var limit: Int
    private var ceiling = BatchCeiling()
    /// The number of entries at the head of the queue that contain a refused one.
    private var suspects = 0
    /// The number of entries that were refused in a row, and the last refusal.
    private var refusals = 0
    private var lastRefusal: OutputFault?

    init(_ options: BatchOptions) {
        most = max(1, options.entries)
        maximumRefusals = options.maximumRefusals
        limit = min(most, max(1, options.firstEntries))
    }

    /// The maximum number of entries of the next batch.
    var size: Int { suspects > 0 ? max(1, min(suspects / 2, limit)) : limit }

    /// Records a success; fast if twice as many entries would not take too long.
    mutating func accepted(_ count: Int, isFast: Bool) {
        refusals = 0
        ceiling.accept(count)
        if suspects > 0 {
            suspects = max(0, suspects - count)
        } else if isFast, ceiling.allowsGrowth(from: limit, after: count) {
            limit = min(most, limit * 2)
        }
    }

    /// Records that a call took too long; `count` is 0 for a call without entries.
    mutating func timedOut(_ count: Int) {
        if count > 0 { limit = max(1, min(limit, count) / 2) }
    }

    /// Records that a call failed without taking long.
    ///
    /// - Parameters:
    ///   - count: The number of its entries; 0 for a call without entries.
    ///   - isAnswered: True if the receiver asks for a pause, so that no network has cut the call.
    mutating func failed(_ count: Int, isAnswered: Bool) {
        guard !isAnswered else { return ceiling.refuse() }
        guard count > 0, ceiling.fail(count) else { return }
        limit = max(1, min(limit, count) / 2)
    }

    /// Records the refusal of a batch.
    ///
    /// - Returns: True if its only entry must be skipped.
    mutating func refused(_ count: Int, _ fault: OutputFault) -> Bool {
        suspects = count > 1 ? count : 0
        ceiling.refuse()
        guard count <= 1 else { return false }
        limit = 1
        refusals += 1
        lastRefusal = fault
        return true
    }

    /// The fault of a receiver that refuses every entry; `nil` while it does not.
    var refusalOfAll: OutputFault? {
        guard refusals >= maximumRefusals, let fault = lastRefusal else { return nil }
        let detail = "the receiver refuses every entry: \(fault.detail)"
        return OutputFault(.misconfigured, detail, retryAfter: fault.retryAfter)
    }
}
