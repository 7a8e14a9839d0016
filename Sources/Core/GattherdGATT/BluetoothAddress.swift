/// A 48-bit Bluetooth device address.
///
/// Bluetooth Core Specification, Vol 6, Part B, "Device address".
public struct BluetoothAddress: Hashable, Sendable {
    /// The address as a number, most significant octet first; below 2^48.
    public let value: UInt64

    /// Creates an address of the lower 48 bits of `value`.
    public init(value: UInt64) {
        self.value = value & 0xFFFF_FFFF_FFFF
    }

    /// Parses `C0:FF:EE:00:00:01`, in any case; `nil` if it is invalid.
    public init?(_ text: some StringProtocol) {
        let octets = text.split(separator: ":", omittingEmptySubsequences: false)
        guard octets.count == 6 else { return nil }
        var value: UInt64 = 0
        for octet in octets {
            let digits = Array(octet.utf8)
            guard digits.count == 2, let high = hexDigitValue(digits[0]), let low = hexDigitValue(digits[1]) else {
                return nil
            }
            value = value << 8 | UInt64(high << 4 | low)
        }
        self.value = value
    }

    /// Parses an address as people and labels write it: `C0:FF:EE:00:00:01`, `c0-ff-ee-00-00-01` or `C0FFEE000001`.
    ///
    /// For the arguments of commands: a device may have such a name, so compare names first. `nil` if it is invalid.
    public init?(anyNotation text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count == 12 else {
            self.init(String(text.map { $0 == "-" || $0 == "_" ? ":" : $0 }))
            return
        }
        let octets = stride(from: 0, to: 12, by: 2).map { String(decoding: bytes[$0..<$0 + 2], as: UTF8.self) }
        self.init(octets.joined(separator: ":"))
    }

    /// True for a static random address, which changes at most when the peripheral restarts.
    ///
    /// Meaningless for public ones.
    ///
    /// The two most significant bits are ones: Core Specification Vol 6, Part B, 1.3.2.1.
    public var isStatic: Bool { value >> 46 == 0b11 }

    /// True for a resolvable private address, which changes every few minutes and is resolved with a key.
    ///
    /// Meaningless for public ones.
    ///
    /// The two most significant bits are 01: Core Specification Vol 6, Part B, 1.3.2.2.
    public var isResolvable: Bool { value >> 46 == 0b01 }
}

extension BluetoothAddress: Comparable {
    public static func < (left: Self, right: Self) -> Bool { left.value < right.value }
}

extension BluetoothAddress: CustomStringConvertible {
    /// The uppercase form with colons.
    public var description: String {
        stride(from: 40, through: 0, by: -8)
            .map { Hexadecimal.text(UInt8(truncatingIfNeeded: value >> UInt64($0)), isUppercase: true) }
            .joined(separator: ":")
    }
}
