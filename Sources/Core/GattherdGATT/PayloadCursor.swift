/// Reads a characteristic's value field by field; every read can fail.
///
/// The cursor borrows the payload, without copies or allocations. Multi-octet integers are
/// little-endian, as everywhere in GATT.
public struct PayloadCursor: ~Escapable {
    private let bytes: Span<UInt8>
    /// The number of octets read.
    public private(set) var offset = 0

    /// Starts at the first octet of `bytes`.
    @_lifetime(copy bytes)
    public init(_ bytes: Span<UInt8>) {
        self.bytes = bytes
    }

    /// The number of octets left.
    public var left: Int { bytes.count - offset }

    /// Reads one octet.
    public mutating func u8() throws(PayloadError) -> UInt8 {
        let start = try advance(1)
        return bytes[start]
    }

    /// Reads an unsigned integer of two octets.
    public mutating func u16() throws(PayloadError) -> UInt16 {
        UInt16(truncatingIfNeeded: try unsigned(octets: 2))
    }

    /// Reads an unsigned integer of four octets.
    public mutating func u32() throws(PayloadError) -> UInt32 {
        UInt32(truncatingIfNeeded: try unsigned(octets: 4))
    }

    /// Reads an unsigned little-endian integer of 1 to 8 octets.
    public mutating func unsigned(octets count: Int) throws(PayloadError) -> UInt64 {
        let start = try advance(count)
        var value: UInt64 = 0
        for index in 0..<count { value |= UInt64(bytes[start + index]) << UInt64(8 * index) }
        return value
    }

    /// Reads a two's complement little-endian integer of 1 to 8 octets.
    public mutating func signed(octets count: Int) throws(PayloadError) -> Int64 {
        let shift = Int64(64 - 8 * count)
        return (Int64(bitPattern: try unsigned(octets: count)) << shift) >> shift
    }

    /// Reads an unsigned big-endian integer of 1 to 8 octets.
    public mutating func unsignedBigEndian(octets count: Int) throws(PayloadError) -> UInt64 {
        let start = try advance(count)
        var value: UInt64 = 0
        for index in 0..<count { value = value << 8 | UInt64(bytes[start + index]) }
        return value
    }

    /// Copies `count` octets.
    public mutating func octets(_ count: Int) throws(PayloadError) -> [UInt8] {
        let start = try advance(count)
        var octets: [UInt8] = []
        octets.reserveCapacity(count)
        for index in start..<start + count { octets.append(bytes[index]) }
        return octets
    }

    /// Steps over `count` octets.
    public mutating func skip(_ count: Int) throws(PayloadError) {
        _ = try advance(count)
    }

    private mutating func advance(_ count: Int) throws(PayloadError) -> Int {
        guard count >= 0, count <= left else { throw .truncated(offset: offset, needed: count, left: left) }
        defer { offset += count }
        return offset
    }
}

/// The reason why a payload does not decode.
public enum PayloadError: Error, Hashable, Sendable {
    /// A field of `needed` octets starts at `offset`, where only `left` are left.
    case truncated(offset: Int, needed: Int, left: Int)
    /// The octets are invalid; `reason` is human-readable.
    case invalid(reason: String)
}

extension PayloadError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .truncated(let offset, let needed, let left):
            "truncated: a field at offset \(offset) needs \(needed) byte\(needed == 1 ? "" : "s"), \(left) left"
        case .invalid(let reason):
            reason
        }
    }
}

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
