/// Vigna's SplitMix64: random numbers that are the same in each run.
public struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    public init(state: UInt64) {
        self.state = state
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `limit` - 1; the limit is not 0.
    public mutating func next(below limit: UInt64) -> Int { Int(next() % limit) }

    /// Returns 0 to `length` random bytes.
    public mutating func payload(atMost length: UInt64) -> [UInt8] {
        (0..<next() % (length + 1)).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}
