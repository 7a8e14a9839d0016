/// A 128-bit Bluetooth UUID; 16- and 32-bit assigned numbers are short forms.
///
/// Bluetooth Core Specification, Vol 3, Part B, "UUID".
public struct BluetoothUUID: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    private static let baseLow: UInt64 = 0x8000_0080_5F9B_34FB
    private static let baseHighTail: UInt64 = 0x0000_1000

    /// Makes the UUID of a 16-bit assigned number, for example `0x180D`.
    public init(_ assigned: UInt16) {
        self.init(assigned: UInt32(assigned))
    }

    /// Makes the UUID of a 32-bit assigned number.
    public init(assigned: UInt32) {
        self.init(high: UInt64(assigned) << 32 | Self.baseHighTail, low: Self.baseLow)
    }

    /// Creates a UUID from its two halves, for example `0x7a4b_bfe6_999f_4717` and `0xb63a_066e_0697_1f59`.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Parses `180d`, `0x180D`, `0000180d` or `0000180d-0000-1000-8000-00805f9b34fb`, in any case.
    ///
    /// Other texts give `nil`.
    public init?(_ text: some StringProtocol) {
        let utf8 = Array(text.utf8)
        let digits = utf8.starts(with: "0x".utf8) || utf8.starts(with: "0X".utf8) ? Array(utf8.dropFirst(2)) : utf8
        switch digits.count {
        case 4, 8:
            guard let number = Self.number(digits[...]) else { return nil }
            self.init(assigned: UInt32(truncatingIfNeeded: number))
        case 36 where digits.count == utf8.count:
            guard let halves = Self.halves(digits) else { return nil }
            self.init(high: halves.0, low: halves.1)
        default:
            return nil
        }
    }

    /// The 16-bit assigned number; `nil` for other UUIDs.
    public var assigned16: UInt16? {
        guard low == Self.baseLow, high & 0xFFFF_FFFF == Self.baseHighTail else { return nil }
        return UInt16(exactly: high >> 32)
    }

    /// The shortest form on air, little-endian: 2, 4 or 16 octets.
    package var shortestOctets: [UInt8] {
        var writer = PayloadWriter()
        if low == Self.baseLow, high & 0xFFFF_FFFF == Self.baseHighTail {
            writer.append(high >> 32, octets: assigned16 == nil ? 4 : 2)
        } else {
            writer.append(low, octets: 8)
            writer.append(high, octets: 8)
        }
        return writer.octets
    }

    /// The lowercase 36-character form that BlueZ uses on D-Bus.
    public var canonical: String {
        let digits = Self.hexadecimal(high, width: 16) + Self.hexadecimal(low, width: 16)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append("-") }
            text.append(digit)
        }
        return text
    }

    private static func hexadecimal(_ number: UInt64, width: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: width - digits.count) + digits
    }

    private static func halves(_ text: [UInt8]) -> (UInt64, UInt64)? {
        let dash = UInt8(ascii: "-")
        guard [8, 13, 18, 23].allSatisfy({ text[$0] == dash }) else { return nil }
        let digits = text.filter { $0 != dash }
        guard digits.count == 32, let high = number(digits[..<16]), let low = number(digits[16...]) else { return nil }
        return (high, low)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        guard digits.allSatisfy({ hexDigitValue($0) != nil }) else { return nil }
        return digits.reduce(0) { $0 << 4 | UInt64(hexDigitValue($1) ?? 0) }
    }
}

extension BluetoothUUID: CustomStringConvertible {
    /// Four lowercase digits for a 16-bit assigned number, else the canonical form.
    public var description: String {
        guard let assigned16 else { return canonical }
        return Self.hexadecimal(UInt64(assigned16), width: 4)
    }
}

extension BluetoothUUID: ExpressibleByIntegerLiteral {
    /// Creates a UUID from a literal: an assigned number of 16 or 32 bits, for example `0x180D`, or all 128 bits, for
    /// example `0x7a4b0001_999f_4717_b63a_066e06971f59`.
    public init(integerLiteral number: UInt128) {
        if let assigned = UInt32(exactly: number) {
            self.init(assigned: assigned)
        } else {
            self.init(high: UInt64(truncatingIfNeeded: number >> 64), low: UInt64(truncatingIfNeeded: number))
        }
    }
}
