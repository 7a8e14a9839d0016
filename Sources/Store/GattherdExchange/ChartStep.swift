import GattherdModel

/// Readable distances between two marks of a time or value axis.
enum ChartStep {
    private static let second: Int64 = 1_000_000
    private static let day = 86_400 * second
    /// The steps in microseconds; steps of a minute or more are multiples of minutes or hours.
    private static let times: [Int64] =
        [1, 2, 5, 10, 20, 50, 100, 200, 500].map { $0 * 1000 }
        + [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].map { $0 * second }
        + [1, 2, 3, 6, 12].map { $0 * 3600 * second } + [1, 2, 7, 14, 28, 91, 182, 364].map { $0 * day }

    /// Returns the shortest step in microseconds of which at most `count` cover `span` microseconds.
    static func time(covering span: Int64, count: Int) -> Int64 {
        let least = span / Int64(max(1, count)) + (span % Int64(max(1, count)) == 0 ? 0 : 1)
        if let time = times.first(where: { $0 >= least }) { return time }
        let years = least / (364 * day) + 1
        return years * 364 * day
    }

    /// Returns the shortest of 1, 2, 5, 10, … of which at most `count` cover `span`; always above zero.
    static func value(covering span: Double, count: Int) -> Double {
        let least = span / Double(max(1, count))
        guard least.isNormal, least > 0 else { return 1 }
        var power = 1.0
        while power > least { power /= 10 }
        while power * 10 <= least { power *= 10 }
        return [1, 2, 5, 10].map { $0 * power }.first { $0 >= least } ?? least
    }
}
