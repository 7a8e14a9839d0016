public import GattherdModel

/// The gateway's clock for the times of stored records, with its last step.
public struct RecordClock: Sendable {
    /// The identifier of the machine's boot.
    let boot: String
    private let now: @Sendable () -> Timestamp
    private let uptime: @Sendable () -> Duration
    private var last: (base: Int64, wall: Int64)?
    private var step: Step?

    /// A step, while values that were received before it may still arrive.
    private struct Step {
        let shift: Int64
        /// The new clock's time at the last reading of the old one.
        let start: Int64
    }

    /// The smallest step; smaller changes are slewing.
    private static let tolerance: Int64 = 1_000_000

    /// - Parameters:
    ///   - boot: The identifier of the machine's boot.
    ///   - now: The wall clock.
    ///   - uptime: The time since the machine's start.
    public init(
        boot: String,
        now: @escaping @Sendable () -> Timestamp,
        uptime: @escaping @Sendable () -> Duration
    ) {
        (self.boot, self.now, self.uptime) = (boot, now, uptime)
    }

    /// Reads the clock; returns its time at the machine's start.
    mutating func read() -> Int64 {
        let wall = now().microseconds
        let base = wall &- Timestamp(microseconds: 0).advanced(by: uptime()).microseconds
        guard let last else {
            self.last = (base, wall)
            return base
        }
        let shift = base &- last.base
        guard shift.magnitude >= UInt64(Self.tolerance) else {
            self.last?.wall = wall
            return last.base
        }
        step = Step(shift: shift, start: last.wall &+ shift)
        self.last = (base, wall)
        return base
    }

    /// Returns the current clock's time of a value that may have been received before the last step.
    func corrected(_ time: Timestamp) -> Timestamp {
        guard let step, let last else { return time }
        let isOld = step.shift > 0 ? time.microseconds < step.start : time.microseconds > last.wall
        return isOld ? Timestamp(microseconds: time.microseconds &+ step.shift) : time
    }
}
