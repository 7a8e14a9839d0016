/// A time range of a query, and the table that has its values: a summary or the samples.
struct FleetSpan: Hashable {
    enum Tier: Int64, CaseIterable {
        case hours = 3_600_000_000
        case minutes = 60_000_000
        case samples = 1

        fileprivate var finer: Self? {
            switch self {
            case .hours: .minutes
            case .minutes: .samples
            case .samples: nil
            }
        }
    }

    let tier: Tier
    let times: Range<Int64>

    /// Returns the parts of a time range, each in the coarsest summary that has it exactly.
    static func parts(of times: Range<Int64>, step: Int64, from tier: Tier = .hours) -> [FleetSpan] {
        guard !times.isEmpty else { return [] }
        guard let finer = tier.finer else { return [FleetSpan(tier: tier, times: times)] }
        let length = tier.rawValue
        guard step.isMultiple(of: length) else { return parts(of: times, step: step, from: finer) }
        let first = times.lowerBound == .min ? .min : times.lowerBound.roundedUp(to: length)
        let last = times.upperBound == .max ? .max : times.upperBound.roundedDown(to: length)
        guard first < last else { return parts(of: times, step: step, from: finer) }
        return parts(of: times.lowerBound..<first, step: step, from: finer)
            + [FleetSpan(tier: tier, times: first..<last)]
            + parts(of: last..<times.upperBound, step: step, from: finer)
    }

    /// The rows, without the time range; totals are limited, as PostgreSQL refuses sums that overflow.
    var sql: String {
        let columns = "SELECT gateway, ts, device, stream, metric, unit"
        return switch tier {
        case .hours: "\(columns), n, min AS low, mean * n AS total, max AS high FROM gattherd.history_hours WHERE true"
        case .minutes:
            "\(columns), n, min AS low, mean * n AS total, max AS high FROM gattherd.history_minutes WHERE true"
        case .samples:
            """
            \(columns), 1::bigint AS n, value AS low, least(greatest(value, -1e298), 1e298) AS total, value AS high
            FROM gattherd.history WHERE value IS NOT NULL
            """
        }
    }
}

extension Int64 {
    fileprivate func roundedDown(to step: Int64) -> Int64 {
        let rest = self % step
        let (down, overflow) = subtractingReportingOverflow(rest < 0 ? rest + step : rest)
        return overflow ? .min : down
    }

    fileprivate func roundedUp(to step: Int64) -> Int64 {
        let down = roundedDown(to: step)
        guard down < self else { return down }
        let (up, overflow) = down.addingReportingOverflow(step)
        return overflow ? .max : up
    }
}
