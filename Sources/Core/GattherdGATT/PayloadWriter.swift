/// Builds a characteristic's value field by field; throws if a number does not fit its field.
public struct PayloadWriter: Hashable, Sendable {
    /// The octets written so far.
    public private(set) var octets: [UInt8] = []

    public init() {}

    /// Writes an unsigned or two's complement integer in the width of `type`, least significant octet first.
    public mutating func integer<Width: FixedWidthInteger>(
        _ value: Int64,
        as type: Width.Type
    ) throws(PayloadError) {
        guard let narrow = Width(exactly: value) else {
            throw .invalid(reason: "\(value) does not fit: \(Width.min) to \(Width.max) would")
        }
        append(UInt64(truncatingIfNeeded: narrow), octets: Width.bitWidth / 8)
    }

    /// Writes the lowest `count` octets of `bits`, least significant first.
    public mutating func append(_ bits: UInt64, octets count: Int) {
        for index in 0..<max(0, count) { octets.append(UInt8(truncatingIfNeeded: bits >> UInt64(8 * index))) }
    }

    /// Appends octets.
    public mutating func append(_ more: some Sequence<UInt8>) {
        octets.append(contentsOf: more)
    }
}
