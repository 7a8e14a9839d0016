/// The value of a parameter of a statement, in the binary format.
struct PostgresParameter: Hashable, Sendable {
    /// The object identifier of its type.
    let type: UInt32
    /// The value's bytes; `nil` for NULL.
    let bytes: [UInt8]?

    private init(_ type: UInt32, _ bytes: [UInt8]?) {
        (self.type, self.bytes) = (type, bytes)
    }

    static func text(_ text: String?) -> Self {
        Self(PostgresType.text.rawValue, text.map { Array($0.withoutNUL.utf8) })
    }

    static func integer(_ number: Int64?) -> Self {
        guard let number else { return Self(PostgresType.integer.rawValue, nil) }
        var bytes: [UInt8] = []
        bytes.append(bigEndian: UInt64(bitPattern: number))
        return Self(PostgresType.integer.rawValue, bytes)
    }

    /// NULL instead of an array.
    static func noArray(of type: PostgresType) -> Self { Self(type.array, nil) }

    static func array(_ array: consuming PostgresArray) -> Self { Self(array.type.array, array.finish()) }
}

/// A type by its object identifier, which never changes.
enum PostgresType: UInt32 {
    case bytes = 17
    case integer = 20
    case shortInteger = 23
    case text = 25
    case real = 701

    /// The type of arrays of this type.
    var array: UInt32 {
        switch self {
        case .bytes: 1001
        case .integer: 1016
        case .shortInteger: 1007
        case .text: 1009
        case .real: 1022
        }
    }
}

/// An array of one dimension in the binary format, element by element.
struct PostgresArray: Sendable {
    private static let headerSize = 20

    let type: PostgresType
    private(set) var count = 0
    private var hasNull = false
    private var bytes: [UInt8]

    init(_ type: PostgresType, capacity: Int = 0) {
        self.type = type
        bytes = []
        bytes.reserveCapacity(Self.headerSize + capacity * 12)
        for _ in 0..<Self.headerSize { bytes.append(0) }
    }

    mutating func append(_ number: Int64?) {
        guard let number else { return appendNull() }
        startElement(8)
        bytes.append(bigEndian: UInt64(bitPattern: number))
    }

    mutating func append(short number: Int32?) {
        guard let number else { return appendNull() }
        startElement(4)
        bytes.append(bigEndian: UInt32(bitPattern: number))
    }

    mutating func append(_ number: Double?) {
        guard let number else { return appendNull() }
        startElement(8)
        bytes.append(bigEndian: number.bitPattern)
    }

    mutating func append(_ text: String?) {
        guard let text = text?.withoutNUL else { return appendNull() }
        startElement(text.utf8.count)
        bytes.append(contentsOf: text.utf8)
    }

    mutating func append(bytes octets: [UInt8]) {
        startElement(octets.count)
        bytes.append(contentsOf: octets)
    }

    private mutating func appendNull() {
        hasNull = true
        count += 1
        bytes.append(bigEndian: UInt32.max)
    }

    private mutating func startElement(_ size: Int) {
        count += 1
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: size))
    }

    /// Returns the complete array: the dimensions, then the elements.
    consuming func finish() -> [UInt8] {
        var header: [UInt8] = []
        header.append(bigEndian: UInt32(count > 0 ? 1 : 0))
        header.append(bigEndian: UInt32(hasNull ? 1 : 0))
        header.append(bigEndian: type.rawValue)
        guard count > 0 else { return header }
        header.append(bigEndian: UInt32(truncatingIfNeeded: count))
        header.append(bigEndian: UInt32(1))
        var bytes = bytes
        bytes.replaceSubrange(..<Self.headerSize, with: header)
        return bytes
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian number: UInt64) {
        append(bigEndian: UInt32(truncatingIfNeeded: number >> 32))
        append(bigEndian: UInt32(truncatingIfNeeded: number))
    }

    fileprivate mutating func append(bigEndian number: UInt32) {
        append(UInt8(truncatingIfNeeded: number >> 24))
        append(UInt8(truncatingIfNeeded: number >> 16))
        append(UInt8(truncatingIfNeeded: number >> 8))
        append(UInt8(truncatingIfNeeded: number))
    }
}
