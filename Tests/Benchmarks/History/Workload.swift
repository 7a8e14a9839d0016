import GattherdModel

/// The stored samples: one value per second, from one series after the other.
struct Workload: Sendable {
    static let series = 50

    let count: Int
    /// Samples of a commit.
    let commit = 200
    /// The first sample's time; the last one's is about now.
    let start: Timestamp

    init(count: Int, now: Timestamp) {
        self.count = count
        start = now.advanced(by: .seconds(-Int64(count / Self.series)))
    }

    var end: Timestamp { time(of: count) }

    func time(of index: Int) -> Timestamp {
        start.advanced(by: .microseconds(Int64(index) * 1_000_000 / Int64(Self.series)))
    }

    func series(of index: Int) -> Int { index % Self.series }

    /// Two decimals that look random and are the same each time.
    func value(of index: Int) -> Double {
        var mixed = UInt64(index) &* 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        return Double((mixed >> 40) % 10_000) / 100
    }
}
