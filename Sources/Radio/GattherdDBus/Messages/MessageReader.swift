/// A reader of untrusted marshalled values.
///
/// D-Bus specification, "Marshaling (Wire Format)". The creator keeps the bytes alive while the reader or a copy is
/// in use.
@safe struct MessageReader {
    /// A range of the message's bytes.
    struct Place {
        static let nowhere = Place(start: 0, count: 0)

        let start: Int32
        let count: Int32
    }

    private let bytes: UnsafeRawBufferPointer
    private let isSwapped: Bool
    private let descriptors: [DBusDescriptor]
    private(set) var position: Int
    private let end: Int

    /// - Parameters:
    ///   - bytes: A message, from its first byte on.
    ///   - range: The part of the message to read.
    ///   - isSwapped: True if the byte order is not this machine's.
    ///   - descriptors: The file descriptors of the message.
    init(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, isSwapped: Bool, _ descriptors: [DBusDescriptor] = []) {
        unsafe self.bytes = bytes
        self.isSwapped = isSwapped
        self.descriptors = descriptors
        position = range.lowerBound
        end = min(range.upperBound, bytes.count)
    }

    /// Moves on to the next multiple of `alignment`, a power of two.
    mutating func align(to alignment: Int) throws(DBusError) {
        position = (position + alignment - 1) & ~(alignment - 1)
        guard position <= end else { throw .truncated }
    }

    mutating func number<Number: FixedWidthInteger & BitwiseCopyable>() throws(DBusError) -> Number {
        try align(to: MemoryLayout<Number>.size)
        let place = try advance(by: MemoryLayout<Number>.size)
        let number = unsafe bytes.loadUnaligned(fromByteOffset: Int(place.start), as: Number.self)
        return isSwapped ? number.byteSwapped : number
    }

    /// Reads a string or an object path; returns its place.
    mutating func text() throws(DBusError) -> Place {
        let count: UInt32 = try number()
        return try readTerminated(Int(count))
    }

    mutating func signature() throws(DBusError) -> Place {
        let count: UInt8 = try number()
        return try readTerminated(Int(count))
    }

    /// Reads the length of an array; returns the place of its elements, without the padding before the first.
    mutating func array(alignedTo alignment: Int) throws(DBusError) -> Place {
        let count: UInt32 = try number()
        try align(to: alignment)
        guard position + Int(count) <= end else { throw .truncated }
        return Place(start: Int32(position), count: Int32(count))
    }

    /// Reads an array of bytes, `ay`; returns its place.
    mutating func byteArray() throws(DBusError) -> Place {
        let place = try array(alignedTo: 1)
        return try advance(by: Int(place.count))
    }

    /// Passes over a value of the type at `place`.
    ///
    /// - Returns: The elements of an array; the bytes of a number; of another value all bytes from here on.
    mutating func skip(_ place: Place) throws(DBusError) -> Place {
        let type = unsafe bytes(at: place)
        let first = unsafe type.first
        if type.count > 1, first == UInt8(ascii: "a") {
            let elements = try array(alignedTo: Self.alignment(of: unsafe type[1]))
            return try advance(by: Int(elements.count))
        }
        if type.count == 1, let size = Self.numberSize(first) {
            try align(to: size)
            return try advance(by: size)
        }
        let start = position
        _ = try values(self[place][...])
        return Place(start: Int32(start), count: Int32(position - start))
    }

    private mutating func readTerminated(_ count: Int) throws(DBusError) -> Place {
        let place = try advance(by: count + 1)
        return Place(start: place.start, count: place.count - 1)
    }

    private mutating func advance(by count: Int) throws(DBusError) -> Place {
        guard end - position >= count else { throw .truncated }
        defer { position += count }
        return Place(start: Int32(position), count: Int32(count))
    }

    // MARK: - Values

    /// Reads one value after the other, of the types in `signature`.
    mutating func values(_ signature: ArraySlice<UInt8>, depth: Int = 0) throws(DBusError) -> [DBusValue] {
        guard depth <= MessageWriter.depthLimit else { throw .invalid("containers are nested too deeply") }
        var values: [DBusValue] = []
        var rest = signature
        while !rest.isEmpty {
            let type = try Self.firstType(of: rest)
            values.append(try value(type, depth: depth))
            rest = rest[type.endIndex...]
        }
        return values
    }

    private mutating func value(_ type: ArraySlice<UInt8>, depth: Int) throws(DBusError) -> DBusValue {
        switch type.first {
        case UInt8(ascii: "y"): .byte(try number())
        case UInt8(ascii: "b"): .boolean(try number() != UInt32(0))
        case UInt8(ascii: "n"): .int16(try number())
        case UInt8(ascii: "q"): .uint16(try number())
        case UInt8(ascii: "i"): .int32(try number())
        case UInt8(ascii: "u"): .uint32(try number())
        case UInt8(ascii: "x"): .int64(try number())
        case UInt8(ascii: "t"): .uint64(try number())
        case UInt8(ascii: "d"): .double(Double(bitPattern: try number()))
        case UInt8(ascii: "s"): .string(string(try text()))
        case UInt8(ascii: "o"): .objectPath(string(try text()))
        case UInt8(ascii: "g"): .signature(string(try self.signature()))
        case UInt8(ascii: "h"): .fileDescriptor(try descriptor())
        default: try container(type, depth: depth + 1)
        }
    }

    private mutating func container(_ type: ArraySlice<UInt8>, depth: Int) throws(DBusError) -> DBusValue {
        guard depth <= MessageWriter.depthLimit else { throw .invalid("containers are nested too deeply") }
        switch type.first {
        case UInt8(ascii: "v"): return .variant(try variant(depth: depth))
        case UInt8(ascii: "a"): return try elements(type.dropFirst(), depth: depth)
        case UInt8(ascii: "(") where type.count > 2:
            try align(to: 8)
            return .structure(try values(type.dropFirst().dropLast(), depth: depth))
        default: throw .unknownType(type)
        }
    }

    private mutating func variant(depth: Int) throws(DBusError) -> DBusValue {
        let signature = self[try self.signature()]
        let type = try Self.firstType(of: signature[...])
        guard type.count == signature.count else { throw .unknownType(signature[...]) }
        return try value(type, depth: depth)
    }

    private mutating func elements(_ type: ArraySlice<UInt8>, depth: Int) throws(DBusError) -> DBusValue {
        guard type.first != UInt8(ascii: "y") else { return .bytes(self[try byteArray()]) }
        let place = try array(alignedTo: Self.alignment(of: type.first))
        let end = Int(place.start) + Int(place.count)
        let result: DBusValue
        if type.first == UInt8(ascii: "{") {
            result = try entries(type.dropFirst().dropLast(), until: end, depth: depth + 1)
        } else {
            var values: [DBusValue] = []
            while position < end { values.append(try value(type, depth: depth)) }
            result = .array(element: String(decoding: type, as: UTF8.self), values)
        }
        guard position == end else { throw .invalid("an array's elements are longer than the array") }
        return result
    }

    private mutating func entries(
        _ types: ArraySlice<UInt8>,
        until end: Int,
        depth: Int
    ) throws(DBusError) -> DBusValue {
        let key = types.prefix(1)
        let value = types.dropFirst()
        guard !value.isEmpty, try Self.firstType(of: value).count == value.count else { throw .unknownType(types) }
        var entries: [DBusEntry] = []
        while position < end {
            try align(to: 8)
            entries.append(DBusEntry(try self.value(key, depth: depth), try self.value(value, depth: depth)))
        }
        return .dictionary(
            key: String(decoding: key, as: UTF8.self),
            value: String(decoding: value, as: UTF8.self),
            entries
        )
    }

    private mutating func descriptor() throws(DBusError) -> DBusDescriptor {
        let index: UInt32 = try number()
        guard index < descriptors.count else { throw .invalid("a file descriptor is missing in the message") }
        return descriptors[Int(index)]
    }

    // MARK: - Places

    /// The type code at the place of a signature, if it is a single letter.
    func letter(_ place: Place) -> UInt8? {
        unsafe place.count == 1 ? bytes(at: place).first : nil
    }

    /// The bytes at a place that was given before.
    func bytes(at place: Place) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(rebasing: bytes[Int(place.start)..<Int(place.start) + Int(place.count)])
    }

    subscript(place: Place) -> [UInt8] { unsafe Array(bytes(at: place)) }

    func string(_ place: Place) -> String { unsafe String(decoding: bytes(at: place), as: UTF8.self) }

    // MARK: - Types

    /// Returns the first complete type of a signature.
    private static func firstType(of signature: ArraySlice<UInt8>) throws(DBusError) -> ArraySlice<UInt8> {
        var depth = 0
        for index in signature.indices {
            switch signature[index] {
            case UInt8(ascii: "("), UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: ")"), UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: "a"): continue
            default: break
            }
            if depth <= 0 { return signature[...index] }
        }
        throw .unknownType(signature)
    }

    /// The size of an integer or a Boolean in bytes, which is its alignment too; `nil` for other types.
    private static func numberSize(_ type: UInt8?) -> Int? {
        switch type {
        case UInt8(ascii: "y"): 1
        case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
        case UInt8(ascii: "b"), UInt8(ascii: "i"), UInt8(ascii: "u"): 4
        case UInt8(ascii: "x"), UInt8(ascii: "t"): 8
        default: nil
        }
    }

    private static func alignment(of type: UInt8?) -> Int {
        switch type {
        case UInt8(ascii: "y"), UInt8(ascii: "g"), UInt8(ascii: "v"): 1
        case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "("), UInt8(ascii: "{"): 8
        default: 4
        }
    }
}

extension DBusError {
    fileprivate static let truncated = DBusError.invalid("the message ends within a value")

    fileprivate static func unknownType(_ type: ArraySlice<UInt8>) -> DBusError {
        .invalid("'\(String(decoding: type, as: UTF8.self))' is not a D-Bus type")
    }
}
