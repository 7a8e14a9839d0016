/// Conversion between octets and hexadecimal text.
public enum Hexadecimal {
    /// Parses `16 48 00 04`, `16480004` or `16:48:00:04`; `nil` for an invalid or single digit.
    public static func octets(_ text: some StringProtocol) -> [UInt8]? {
        var octets: [UInt8] = []
        var high: UInt8?
        for character in text.utf8 where !separators.contains(character) {
            guard let digit = hexDigitValue(character) else { return nil }
            if let first = high {
                octets.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        return high == nil ? octets : nil
    }

    /// Returns lowercase digits without separators.
    public static func text(_ octets: Span<UInt8>) -> String {
        unsafe String(unsafeUninitializedCapacity: octets.count * 2) { buffer in
            for index in octets.indices {
                unsafe buffer[2 * index] = digits[Int(octets[index] >> 4)]
                unsafe buffer[2 * index + 1] = digits[Int(octets[index] & 15)]
            }
            return octets.count * 2
        }
    }

    /// Returns the two digits of a byte.
    package static func text(_ byte: UInt8, isUppercase: Bool = false) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: isUppercase)
    }

    private static let separators = Array(" :-\t".utf8)
    private static let digits = Array("0123456789abcdef".utf8)
}

/// Returns the value of a hexadecimal digit in ASCII, 0 to 15.
func hexDigitValue(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
}
