import GattherdModel

/// The steps of the wall clock since the daemon's start, which correct times from before a step.
///
/// On a host without a battery-backed clock the daemon may start days before the time is set.
struct ClockSteps: Sendable {
    /// A period without a step; the members are in microseconds.
    private struct Span {
        /// The wall clock's time at the machine's start, which only a step changes.
        let offset: Int64
        /// The uptimes of the first and the last observation.
        let first: Int64
        var last: Int64
    }

    /// The smallest step, in microseconds; smaller changes are slewing.
    private static let tolerance: UInt64 = 1_000_000
    /// The maximum number of spans that are kept, the newest.
    private static let limit = 16

    private var spans: [Span] = []

    /// - Parameters:
    ///   - started: The daemon's start by the wall clock.
    ///   - uptime: The time since the machine's start, which cannot be set.
    init(started: Timestamp, uptime: Duration) {
        observe(started, uptime: uptime)
    }

    /// Records the time of both clocks; a new period begins if the wall clock was set.
    mutating func observe(_ now: Timestamp, uptime: Duration) {
        let uptime = Timestamp(microseconds: 0).advanced(by: uptime).microseconds
        let offset = now.microseconds &- uptime
        if let span = spans.last, (offset &- span.offset).magnitude < Self.tolerance {
            spans[spans.count - 1].last = uptime
        } else {
            spans = spans.suffix(Self.limit - 1) + [Span(offset: offset, first: uptime, last: uptime)]
        }
    }

    /// Converts a time of this run to the present clock; returns other times unchanged.
    func corrected(_ time: Timestamp) -> Timestamp {
        guard let newest = spans.last else { return time }
        for index in spans.indices.reversed() {
            let uptime = time.microseconds &- spans[index].offset
            // A step is between the last observation before it and the first one after it.
            let earliest = index > 0 ? spans[index - 1].last : spans[index].first
            let latest = index + 1 < spans.count ? spans[index + 1].first : spans[index].last
            guard earliest <= uptime, uptime <= latest else { continue }
            return Timestamp(microseconds: time.microseconds &+ (newest.offset &- spans[index].offset))
        }
        return time
    }

    /// Returns the corrected time of a text in RFC 3339.
    fileprivate func corrected(_ text: String) -> String {
        guard spans.count > 1, let time = Timestamp(rfc3339: text.utf8) else { return text }
        return corrected(time).rfc3339
    }

    /// Returns the corrected time of a text that was counted from another time, and may be ahead of the clock.
    fileprivate func corrected(_ text: String, countedFrom start: String) -> String {
        guard spans.count > 1, let time = Timestamp(rfc3339: text.utf8), let start = Timestamp(rfc3339: start.utf8)
        else { return text }
        let step = corrected(start).microseconds &- start.microseconds
        return Timestamp(microseconds: time.microseconds &+ step).rfc3339
    }
}

extension DaemonStatus {
    /// Corrects the times of states and of next attempts, so that ages and pauses are right after a step of the wall
    /// clock.
    mutating func correctTimes(_ steps: ClockSteps) {
        started = steps.corrected(started)
        for index in devices.indices {
            let since = devices[index].since
            // A pause begins with the state.
            devices[index].nextRetry = devices[index].nextRetry.map { steps.corrected($0, countedFrom: since) }
            devices[index].since = steps.corrected(since)
            devices[index].lastReading = devices[index].lastReading.map { steps.corrected($0) }
            devices[index].lastHeard = devices[index].lastHeard.map { steps.corrected($0) }
            devices[index].records = devices[index].records?.map { download in
                var download = download
                download.since = steps.corrected(download.since)
                return download
            }
        }
        alerts = alerts?.map { alert in
            var alert = alert
            alert.since = steps.corrected(alert.since)
            return alert
        }
    }
}
