/// The smoothed strength of a device's advertisements at one adapter, and the time within which it is heard.
///
/// Time is passed in, counted from any fixed instant.
public struct SmoothedSignal: Hashable, Sendable {
    /// The number of advertisements over which the mean is taken; older ones fade out.
    private static let longestMemory = 8
    /// The number of advertisements after which a strength may be compared with others.
    private static let steadyCount = 3
    private static let windows = Duration.seconds(2)...Duration.seconds(3600)
    /// The number of mean intervals between advertisements in one window.
    private static let intervalsPerWindow = 4

    private static let shortestQuiet = Duration.milliseconds(1500)

    /// The strength in dBm; `nil` before the first advertisement.
    private var mean: Double?
    private var count = 0
    /// The mean time between two advertisements.
    private(set) var interval: Duration?
    private(set) var lastHeard: Duration?
    private var wasAbsence = false

    public init() {}

    /// The smoothed strength in dBm.
    public var level: Int? { mean.map { Int($0.rounded()) } }

    /// True if the strength is the mean of several advertisements.
    public var isSteady: Bool { count >= Self.steadyCount }

    /// The time within which a device in reach is heard, learned from its advertisements.
    public var window: Duration {
        let learned = (interval ?? .zero) * Self.intervalsPerWindow
        return min(max(learned, Self.windows.lowerBound), Self.windows.upperBound)
    }

    /// Records an advertisement; after a long absence the mean starts over.
    public mutating func record(_ rssi: Int, at now: Duration) {
        if let lastHeard { learn(max(now - lastHeard, .zero), isAbsence: isGone(at: now)) }
        if isGone(at: now) { (mean, count) = (nil, 0) }
        count = min(count + 1, Self.longestMemory)
        let strength = Double(min(max(rssi, -127), 20))
        mean = mean.map { $0 + (strength - $0) / Double(count) } ?? strength
        lastHeard = now
    }

    /// Learns from the time between two advertisements.
    ///
    /// A single absence, such as a link, is ignored. If a device advertises seldom, each gap is an absence, and
    /// repeated absences double the interval until it is right.
    private mutating func learn(_ gap: Duration, isAbsence: Bool) {
        let known = interval ?? min(gap, Self.windows.lowerBound / Self.intervalsPerWindow)
        defer { wasAbsence = isAbsence }
        guard isAbsence else { return interval = known + (gap - known) / Self.longestMemory }
        if wasAbsence { interval = min(gap, known * 2) }
    }

    /// True after one and a half windows without an advertisement.
    public func isSilent(at now: Duration) -> Bool { lastHeard.map { now - $0 >= window * 3 / 2 } ?? true }

    /// True after four intervals without an advertisement, at least 1.5 s: for an owner that has lost its link.
    public func isQuiet(at now: Duration) -> Bool {
        let limit = max((interval ?? .zero) * Self.intervalsPerWindow, Self.shortestQuiet)
        return lastHeard.map { now - $0 >= min(limit, window * 3 / 2) } ?? true
    }

    /// True after two and a half windows without an advertisement.
    public func isGone(at now: Duration) -> Bool { lastHeard.map { now - $0 >= window * 5 / 2 } ?? true }
}
