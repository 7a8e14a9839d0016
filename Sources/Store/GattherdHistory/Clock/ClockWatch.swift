import GattherdModel

/// Detects when an unset wall clock is set, for example after a start without a battery-backed clock.
///
/// A clock in doubt is watched again until it returns to the proven time or is trusted.
struct ClockWatch {
    enum Finding: Equatable {
        case nothing
        /// The clock stepped, but the kernel does not call it synchronised.
        case stepped
        /// The kernel calls the clock synchronised, but the proven time contradicts it.
        case claimed
        /// The clock is correct from now on.
        case set
    }

    /// The smallest step, in microseconds; smaller changes are slewing.
    static let tolerance: Int64 = 1_000_000

    /// True once the clock was set or synchronised.
    ///
    /// Later steps without doubt leave stored rows unchanged.
    private(set) var isSet: Bool
    /// True if the kernel has reported the current clock as synchronised.
    private var isClaimed = false
    /// True if the clock contradicted the proven time.
    private var wasDoubted: Bool
    /// An instant before the machine's start, in microseconds since 1970.
    private let past: Int64
    private var last: ClockReading
    private var step: Step?

    /// The last step, while readings that were stamped before it may still arrive.
    private struct Step {
        let shift: Int64
        /// The new clock's time at the last reading of the old one.
        let start: Int64
        /// The uptime after which no such readings arrive.
        let end: Int64
    }

    /// The time after a step during which readings from before it may arrive, in microseconds.
    private static let delay: Int64 = 3_600_000_000

    /// - Parameters:
    ///   - reading: The clocks now.
    ///   - past: An instant that is certainly past: a clock that steps from before it to after it was set.
    ///   - isDoubted: True if the clock differs from the proven time.
    init(_ reading: ClockReading, past: Int64, isDoubted: Bool) {
        isSet = reading.isSynchronised && !isDoubted
        wasDoubted = isDoubted
        self.past = past
        last = reading
    }

    /// Compares the clocks with their last reading.
    ///
    /// - Parameters:
    ///   - reading: The clocks now.
    ///   - isDoubted: True if the clock differs from the proven time.
    /// - Returns: The change, to be recorded in the file unless it is `nothing`.
    mutating func observe(_ reading: ClockReading, isDoubted: Bool) -> Finding {
        let isReturn = wasDoubted && !isDoubted
        defer { (last, wasDoubted) = (reading, isDoubted) }
        if isSet && !isDoubted { return .nothing }
        let step = reading.offset &- last.offset
        let isStep = step <= -Self.tolerance || step >= Self.tolerance
        if isStep { recordStep(step, reading) }
        if isStep || isSet { isClaimed = false }
        let wasSet = isSet
        isSet = false
        if wasSet { return .stepped }
        let isEvident = isStep && ((last.wall < past && reading.wall >= past) || isReturn)
        guard reading.isSynchronised || isEvident else { return isStep ? .stepped : .nothing }
        isSet = !isDoubted
        if isSet { return .set }
        defer { isClaimed = true }
        return isClaimed ? .nothing : .claimed
    }

    /// True if ``corrected(_:_:)`` may return another time.
    func mayCorrect(_ reading: ClockReading) -> Bool { step.map { reading.uptime < $0.end } ?? false }

    /// Returns the correct time of a reading that may have been stamped before the last step.
    ///
    /// After a step forward, earlier readings have times that the new clock never had. After a step back, they have
    /// times that the new clock does not have yet.
    func corrected(_ time: Int64, _ reading: ClockReading) -> Int64 {
        guard let step else { return time }
        let isOld = step.shift > 0 ? time < step.start : time > reading.wall
        return isOld ? time &+ step.shift : time
    }

    private mutating func recordStep(_ shift: Int64, _ reading: ClockReading) {
        step = Step(shift: shift, start: reading.offset &+ last.uptime, end: reading.uptime &+ Self.delay)
    }
}
