import GattherdModel

/// The oldest samples that a pass has left because they wait for delivery; the next passes do not read them again.
///
/// While an output is away for longer than samples are kept, there are millions of them. They stay until a consumer
/// acknowledges readings or the backlog drops some.
struct WaitingSamples {
    /// The amounts that change when a waiting sample may be deleted.
    struct State: Equatable {
        /// The last reading that all consumers have acknowledged.
        var delivered: Int64
        /// The number of readings dropped before delivery.
        var dropped: Int
    }

    private var state: State?
    /// The last instant up to which all samples wait.
    private var end = Int64.min

    /// Returns the instant after which samples must be checked.
    ///
    /// - Parameters:
    ///   - start: The instant after which a pass would check them.
    ///   - state: The current state; `nil` if samples arrive that wait for nobody.
    /// - Returns: The instant; `start`, or a later one.
    mutating func start(after start: Int64, _ state: State?) -> Int64 {
        if state == nil || state != self.state { removeAll() }
        self.state = state
        return max(start, end)
    }

    /// Adds the samples after `start`, up to and including `last`, which were not deleted.
    mutating func add(after start: Int64, through last: Int64) {
        if state != nil, start <= end { end = max(end, last) }
    }

    /// Makes the next pass check all samples.
    mutating func removeAll() {
        end = .min
    }
}
