/// The type of a field's bytes.
enum FieldType: Hashable, Sendable {
    /// An integer of 1 to 8 bytes.
    case integer(octets: Int, isSigned: Bool, isBigEndian: Bool)
    /// An IEEE 754 number of 4 or 8 bytes.
    case real(octets: Int, isBigEndian: Bool)
    /// An IEEE 11073 number of two bytes.
    case sfloat
    /// An IEEE 11073 number of four bytes.
    case float
    /// One byte, 0 or 1.
    case boolean
    /// A Date Time of seven bytes, in the device's own time without a zone.
    case dateTime
    /// The date of a Date Time, four bytes.
    case date
    /// A UUID of 2, 4 or 16 bytes.
    case uuid(octets: Int, isBigEndian: Bool = false)
    /// A UTF-8 text.
    case text
    /// A UTF-8 text that ends at a NUL.
    case terminatedText
    /// A little-endian UTF-16 text.
    case wideText
    /// A number in ASCII digits.
    case decimal
    /// Bytes, as a hexadecimal text.
    case octets

    /// The type names of the profile format.
    static let words: [(word: String, value: FieldType)] = {
        var words: [(String, FieldType)] = []
        for (letter, isSigned) in [("u", false), ("i", true)] {
            words.append((letter + "8", .integer(octets: 1, isSigned: isSigned, isBigEndian: false)))
            for octets in 2...8 {
                let word = letter + String(8 * octets)
                words.append((word + "le", .integer(octets: octets, isSigned: isSigned, isBigEndian: false)))
                words.append((word + "be", .integer(octets: octets, isSigned: isSigned, isBigEndian: true)))
                words.append((word, .integer(octets: octets, isSigned: isSigned, isBigEndian: false)))
            }
        }
        for (word, octets) in [("f32", 4), ("f64", 8)] {
            words.append((word + "le", .real(octets: octets, isBigEndian: false)))
            words.append((word + "be", .real(octets: octets, isBigEndian: true)))
            words.append((word, .real(octets: octets, isBigEndian: false)))
        }
        return words + [
            ("sfloat", .sfloat), ("float", .float), ("bool", .boolean), ("datetime", .dateTime), ("date", .date),
            ("uuid16", .uuid(octets: 2)), ("uuid32", .uuid(octets: 4)), ("uuid128", .uuid(octets: 16)),
            ("uuid128be", .uuid(octets: 16, isBigEndian: true)),
            ("utf8", .text), ("cstring", .terminatedText), ("utf16", .wideText), ("bytes", .octets),
            ("ascii", .decimal),
        ]
    }()

    /// The width in bytes; `nil` if the field gives it.
    var width: Int? {
        switch self {
        case .integer(let octets, _, _), .real(let octets, _): octets
        case .sfloat: 2
        case .float: 4
        case .boolean: 1
        case .dateTime: 7
        case .date: 4
        case .uuid(let octets, _): octets
        case .text, .terminatedText, .wideText, .decimal, .octets: nil
        }
    }

    /// True for numbers, which can be scaled.
    var isNumber: Bool {
        switch self {
        case .integer, .real, .sfloat, .float, .decimal: true
        case .boolean, .dateTime, .date, .uuid, .text, .terminatedText, .wideText, .octets: false
        }
    }

    var isInteger: Bool {
        if case .integer = self { true } else { false }
    }

    /// The width in bits of a signed integer; `nil` for another type.
    var signedBits: Int? {
        if case .integer(let octets, isSigned: true, _) = self { 8 * octets } else { nil }
    }

    /// The range of an integer of this type, clamped to `Int64`.
    var integerRange: ClosedRange<Int64>? {
        guard case .integer(let octets, let isSigned, _) = self else { return nil }
        let bits = Int64(8 * octets)
        if isSigned { return (Int64.min >> (64 - bits))...(Int64.max >> (64 - bits)) }
        return 0...(octets == 8 ? .max : (1 << bits) - 1)
    }
}

extension FieldType {
    /// The bits of an integer of this type; all 64 of one beyond its range.
    func pattern(of number: Int64) -> UInt64 {
        guard let width, let range = integerRange, range.contains(number) else { return UInt64(bitPattern: number) }
        return UInt64(bitPattern: number) & (.max >> UInt64(64 - 8 * width))
    }
}

extension ProfileGrammar<FieldType> {
    static let type: ProfileGrammar = {
        let words = FieldType.words.map(\.word)
        let expectation =
            "a type: u8 or i8; u16 to u64 and i16 to i64 in steps of 8, f32 or f64, with le or be; sfloat, float, "
            + "bool, datetime, date, uuid16, uuid32, uuid128, uuid128be, utf8, cstring, utf16, ascii, bytes"
        return ProfileGrammar(expectation, words: words) { text in FieldType.words.first { $0.word == text }?.value }
    }()
}
