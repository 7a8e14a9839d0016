/// A decimal number that is read byte by byte: a sign, digits, a point, with spaces or NULs around it.
struct DecimalText {
    private enum Place {
        case before
        case sign
        case whole
        case fraction
        case after
        case invalid
    }

    private static let maximumDigits = 15

    private var place = Place.before
    private var isNegative = false
    private var digits: Int64 = 0
    private var count = 0
    private var divisor = 1.0

    /// The number; `nil` if the text is not a number.
    var value: Double? {
        guard count > 0, place != .invalid else { return nil }
        return Double(isNegative ? -digits : digits) / divisor
    }

    mutating func append(_ octet: UInt8) {
        switch (octet, place) {
        case (UInt8(ascii: "0")...UInt8(ascii: "9"), .before), (UInt8(ascii: "0")...UInt8(ascii: "9"), .sign),
            (UInt8(ascii: "0")...UInt8(ascii: "9"), .whole), (UInt8(ascii: "0")...UInt8(ascii: "9"), .fraction):
            append(digit: octet - UInt8(ascii: "0"))
        case (UInt8(ascii: "+"), .before), (UInt8(ascii: "-"), .before):
            (place, isNegative) = (.sign, octet == UInt8(ascii: "-"))
        case (UInt8(ascii: "."), .before), (UInt8(ascii: "."), .sign), (UInt8(ascii: "."), .whole):
            place = .fraction
        case (UInt8(ascii: " "), .before), (0, .before): break
        case (UInt8(ascii: " "), .whole), (UInt8(ascii: " "), .fraction), (UInt8(ascii: " "), .after),
            (0, .whole), (0, .fraction), (0, .after):
            place = .after
        default: place = .invalid
        }
    }

    private mutating func append(digit: UInt8) {
        guard count < Self.maximumDigits else {
            place = .invalid
            return
        }
        digits = digits * 10 + Int64(digit)
        count += 1
        if place == .fraction { divisor *= 10 } else { place = .whole }
    }
}
