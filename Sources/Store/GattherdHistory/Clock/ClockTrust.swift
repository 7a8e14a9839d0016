import GattherdModel

/// Decides by which time rows are old enough to be deleted.
///
/// The uptime proves how much time has passed since the wall clock was last trusted, also over restarts of the daemon.
/// A difference of the wall clock from the proven time is a claim. The claim is accepted when the kernel has reported
/// the clock as synchronised for as long as the difference, at most one hour. Without synchronisation, the clock must
/// run on for as long as the difference, at most seven days. After a claim that lies ahead, rows are deleted slowly
/// until none are too old.
struct ClockTrust {
    enum Phase: Int64 {
        /// The wall clock agrees with the uptime.
        case trusted
        /// The wall clock contradicts the uptime; rows are deleted by the proven time.
        case waiting
        /// The wall clock is accepted; rows that are too old only by its time are deleted slowly.
        case limited
    }

    private static let second: Int64 = 1_000_000
    /// The smallest difference that raises doubt.
    static let tolerance = 60 * second
    private static let hour = 3600 * second
    private static let week = 7 * 86_400 * second
    /// The longest time between two readings of the clocks without an unknown event in between.
    private static let longestPause = 120 * second
    /// The longest downtime of a daemon that raises no doubt.
    private static let longestAbsence = 70 * 60 * second

    private(set) var mark: ClockMark
    /// True while the file has no row that a wrong clock could delete or move.
    var isFileEmpty: Bool
    /// The time of the program's build in microseconds since 1970; a correct clock is never earlier.
    private let earliest: Int64

    /// - Parameters:
    ///   - reading: The clocks now.
    ///   - boot: The identifier of the machine's boot.
    ///   - saved: The mark in the file; `nil` without one.
    ///   - earliest: A time that is certainly past.
    ///   - newest: The latest time of a sample, if there is one.
    ///   - isEmpty: True if the file has no rows to lose.
    ///   - hasImports: True if rows of another clock were imported.
    init(
        _ reading: ClockReading,
        boot: String,
        saved: ClockMark?,
        earliest: Int64,
        newest: Int64? = nil,
        isEmpty: Bool,
        hasImports: Bool = false
    ) {
        self.earliest = earliest
        isFileEmpty = isEmpty
        mark = saved ?? ClockMark(reading, boot: boot, isFresh: isEmpty)
        if hasImports { mark.isFresh = false }
        let absence = reading.uptime &- mark.uptime
        if mark.boot != boot || absence < 0 {
            if !isEmpty { mark.isFresh = false }
            beginBoot(boot, reading, newest)
        } else if absence > Self.longestAbsence {
            mark.lag = mark.lag &+ absence
            mark.isFresh = false
        }
        observe(reading)
    }

    var isTrusted: Bool { mark.phase == .trusted }

    /// Compares the clocks with their last reading.
    mutating func observe(_ reading: ClockReading) {
        var elapsed = min(max(0, reading.uptime &- mark.uptime), Self.longestPause)
        if (reading.offset &- mark.offset).magnitude > Self.tolerance {
            elapsed = 0
            restartProof()
        }
        mark.waited = mark.waited &+ elapsed
        mark.synchronised = reading.isSynchronised ? mark.synchronised &+ elapsed : 0
        mark.uptime = reading.uptime
        mark.wall = reading.wall
        assess(reading)
    }

    /// Records that no rows are left that are too old by the wall clock.
    mutating func recordCaughtUp(_ reading: ClockReading) {
        if mark.phase == .limited { believe(reading) }
    }

    /// The time by which rows may be deleted without a limit.
    func proven(_ reading: ClockReading) -> Int64 {
        if isTrusted { return reading.wall }
        return min(reading.wall, mark.proven(reading) ?? .min)
    }

    /// The time by which rows may be deleted slowly, if there is one.
    func claimed(_ reading: ClockReading) -> Int64? {
        mark.phase == .limited ? reading.wall : nil
    }

    /// The doubt to report to people; smaller doubts pass by themselves.
    func doubt(_ reading: ClockReading) -> ClockDoubt? {
        guard !isTrusted, !mark.isFresh else { return nil }
        let lead = mark.lead(reading)
        if let lead, lead.magnitude < Self.hour.magnitude { return nil }
        return ClockDoubt(ahead: lead.map { .microseconds($0) }, isLimited: mark.phase == .limited)
    }

    private mutating func assess(_ reading: ClockReading) {
        guard reading.wall >= earliest else {
            mark.phase = .waiting
            return
        }
        let lead = mark.lead(reading)
        if let lead, lead.magnitude <= tolerance(reading) {
            mark.phase = .trusted
            return
        }
        if isTrusted { restartProof() }
        if mark.isFresh, isFileEmpty, reading.isSynchronised { return believe(reading) }
        guard mark.phase == .waiting, isProven(lead) else { return }
        // A clock that was set back deletes no rows.
        if let lead, lead < 0 { return believe(reading) }
        mark.phase = .limited
    }

    private func isProven(_ lead: Int64?) -> Bool {
        let claim = Int64(clamping: (lead ?? .max).magnitude)
        if mark.synchronised >= min(claim, Self.hour) { return true }
        return (lead ?? .max) > 0 && mark.waited >= min(claim, Self.week)
    }

    /// The tolerated deviation: a clock may also be slewed, by at most one in a thousand.
    private func tolerance(_ reading: ClockReading) -> Int64 {
        Self.tolerance + max(0, reading.uptime &- mark.lag &- mark.baseUptime) / 1000
    }

    private mutating func restartProof() {
        mark.phase = .waiting
        mark.waited = 0
        mark.synchronised = 0
    }

    private mutating func believe(_ reading: ClockReading) {
        mark.base = reading.offset
        mark.baseUptime = reading.uptime
        mark.lag = 0
        mark.isFresh = false
        restartProof()
        mark.phase = .trusted
    }

    /// Starts a new boot, of which only the uptime is proven: how long the machine was off is unknown.
    private mutating func beginBoot(_ boot: String, _ reading: ClockReading, _ newest: Int64?) {
        let isConsistent = reading.wall >= mark.wall
        let waited = mark.waited
        let last = mark.base.map { $0 &+ mark.uptime &- mark.lag }
        // After a crash the newest sample tells how long the machine ran on since the mark was saved.
        mark.base = last.map { isTrusted ? max($0, min(newest ?? .min, $0 &+ Self.longestAbsence)) : $0 }
        mark.baseUptime = 0
        mark.lag = 0
        mark.boot = boot
        mark.uptime = reading.uptime
        mark.wall = reading.wall
        restartProof()
        if isConsistent { mark.waited = waited }
    }
}

/// The persisted state of clock trust; all times are in microseconds, those of the wall clock since 1970.
struct ClockMark: Equatable {
    /// The boot in which the clocks were read, and their reading.
    var boot: String
    var uptime: Int64
    var wall: Int64
    /// The proven wall clock time of the machine's start; `nil` if nothing is proven.
    var base: Int64?
    /// The uptime at which the trust was last confirmed.
    var baseUptime: Int64 = 0
    /// The part of the uptime during which no daemon ran, and which proves nothing.
    var lag: Int64 = 0
    var phase = ClockTrust.Phase.waiting
    /// The time without a clock step, with the daemon running.
    var waited: Int64 = 0
    /// The time for which the kernel has reported the clock as synchronised without a break.
    var synchronised: Int64 = 0
    /// True if the file was created empty and no clock has been trusted since.
    var isFresh: Bool

    var offset: Int64 { wall &- uptime }

    /// The earliest possible time now.
    func proven(_ reading: ClockReading) -> Int64? {
        base.map { $0 &+ reading.uptime &- lag }
    }

    /// Returns the lead of the wall clock over the proven time; `nil` if nothing is proven.
    func lead(_ reading: ClockReading) -> Int64? {
        proven(reading).map { reading.wall &- $0 }
    }
}

extension ClockMark {
    init(_ reading: ClockReading, boot: String, isFresh: Bool) {
        self.init(boot: boot, uptime: reading.uptime, wall: reading.wall, isFresh: isFresh)
    }
}

/// A wall clock that history does not trust, or not fully yet.
public struct ClockDoubt: Hashable, Sendable {
    /// The lead over the proven time; `nil` if nothing is proven.
    public var ahead: Duration?
    /// True if rows that are too old by this clock are being deleted slowly.
    public var isLimited: Bool

    /// The doubt and its consequence, for people.
    public var text: String {
        let action =
            isLimited
            ? "rows too old by it are deleted slowly, less than 1 % of the file an hour; if it is wrong, set it now"
            : "no row is deleted by it before it was synchronised for an hour, or has run on for 7 days"
        return "the clock is \(difference); \(action)"
    }

    private var difference: String {
        guard let ahead else { return "not known to be right" }
        let hours = Int(abs(ahead / .seconds(3600)))
        let size = hours < 48 ? "\(hours) h" : "\(hours / 24) days"
        return "\(size) \(ahead > .zero ? "ahead of" : "behind") the time that is proven"
    }
}
