import GattherdModel

/// Notices when a wall clock that was not set, as after a start without a battery-backed one, is set at last.
///
/// A clock that was set is watched again when it is doubted: until it comes back, or is believed.
struct ClockWatch {
    enum Finding: Equatable {
        case nothing
        /// The clock stepped, but the kernel does not call it synchronised.
        case stepped
        /// The kernel calls the clock synchronised, but the proven time contradicts it.
        case claimed
        /// The clock is right from now on.
        case set
    }

    /// The smallest step; smaller changes are slewing.
    static let tolerance: Int64 = 1_000_000

    /// Steps that leave no doubt are nobody's correction: what they find stays.
    private(set) var isSet: Bool
    /// The kernel has called the clock right as it is now.
    private var isClaimed = false
    /// The clock was not as is proven.
    private var wasDoubted: Bool
    /// An instant that was past before the machine was started.
    private let past: Int64
    private var last: ClockReading
    private var step: Step?

    /// The last step, as far as readings may come that were stamped before it.
    private struct Step {
        let shift: Int64
        /// The new clock's time at the last reading of the old one.
        let start: Int64
        /// The uptime at which none of them are left.
        let end: Int64
    }

    /// The time after a step during which readings from before it may arrive, in microseconds.
    private static let delay: Int64 = 3_600_000_000

    /// - Parameters:
    ///   - reading: The clocks now.
    ///   - past: An instant that is surely past: a clock that goes from before it to after it was set.
    ///   - isDoubted: The clock is not as is proven.
    init(_ reading: ClockReading, past: Int64, isDoubted: Bool) {
        isSet = reading.isSynchronised && !isDoubted
        wasDoubted = isDoubted
        self.past = past
        last = reading
    }

    /// Compares the clocks with what they were.
    ///
    /// - Parameters:
    ///   - reading: The clocks now.
    ///   - isDoubted: The clock is not as is proven.
    /// - Returns: Anything but `nothing` is to be noted in the file.
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

    /// True when ``corrected(_:_:)`` may give another time.
    func mayCorrect(_ reading: ClockReading) -> Bool { step.map { reading.uptime < $0.end } ?? false }

    /// The right time of a reading that may have been stamped before the last step and only comes now.
    ///
    /// After a step forward, what is from before it has a time that the new clock never had; after one back, a time
    /// that it does not have yet.
    func corrected(_ time: Int64, _ reading: ClockReading) -> Int64 {
        guard let step else { return time }
        let isOld = step.shift > 0 ? time < step.start : time > reading.wall
        return isOld ? time &+ step.shift : time
    }

    private mutating func recordStep(_ shift: Int64, _ reading: ClockReading) {
        step = Step(shift: shift, start: reading.offset &+ last.uptime, end: reading.uptime &+ Self.delay)
    }
}
