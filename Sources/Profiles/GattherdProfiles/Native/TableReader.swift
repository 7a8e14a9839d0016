import CGattherdProfile
import GattherdGATT
import GattherdModel
import Glibc

/// An error in a native profile's table.
struct TableFault: Error, Hashable {
    let reason: String

    init(_ reason: String) {
        self.reason = reason
    }
}

/// Reads and validates a native profile's table.
enum TableReader {
    private static let longestText = 255
    /// The maximum length of a test's text, in bytes.
    static let longestTest = 4096
    /// The maximum plausible size of a structure, in bytes.
    private static let largestStructure = 4096

    /// Reads a required text of at most `limit` bytes.
    static func text(
        _ raw: UnsafePointer<CChar>?,
        _ what: String,
        limit: Int = longestText
    ) throws(TableFault) -> String {
        guard let text = try unsafe optionalText(raw, what, limit: limit) else { throw TableFault("\(what) is NULL") }
        guard !text.isEmpty else { throw TableFault("\(what) is empty") }
        return text
    }

    static func optionalText(
        _ raw: UnsafePointer<CChar>?,
        _ what: String,
        limit: Int = longestText
    ) throws(TableFault) -> String? {
        guard let raw = unsafe raw else { return nil }
        let length = unsafe strnlen(raw, limit + 1)
        guard length <= limit else { throw TableFault("\(what) has more than \(limit) bytes") }
        let octets = unsafe UnsafeRawBufferPointer(start: raw, count: length)
        guard let text = unsafe String(validating: octets, as: UTF8.self) else {
            throw TableFault("\(what) is not UTF-8")
        }
        guard text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
            throw TableFault("\(what) has a control character")
        }
        return text
    }

    /// Reads the name of a stream, a metric or a control.
    static func identifier(_ raw: UnsafePointer<CChar>?, _ what: String) throws(TableFault) -> String {
        let name = try unsafe text(raw, what)
        guard ProfileRules.isIdentifier(name) else {
            throw TableFault("\(what) '\(name)' may have only a-z, 0-9 and _, at most 64 characters")
        }
        return name
    }

    static func uuid(_ raw: UnsafePointer<CChar>?, _ what: String) throws(TableFault) -> BluetoothUUID {
        guard let uuid = try unsafe optionalUUID(raw, what) else { throw TableFault("\(what) is NULL") }
        return uuid
    }

    static func optionalUUID(_ raw: UnsafePointer<CChar>?, _ what: String) throws(TableFault) -> BluetoothUUID? {
        guard let text = try unsafe optionalText(raw, what) else { return nil }
        guard let uuid = BluetoothUUID(text) else { throw TableFault("\(what) '\(text)' is not a UUID") }
        return uuid
    }

    /// Reads a pattern such as `80 05 ??`.
    static func optionalPattern(_ raw: UnsafePointer<CChar>?, _ what: String) throws(TableFault) -> BytePattern? {
        guard let text = try unsafe optionalText(raw, what) else { return nil }
        guard let pattern = BytePattern(text) else {
            throw TableFault("\(what) '\(text)' is not a pattern such as 80 05 ??")
        }
        return pattern
    }

    /// Reads at most `most` bytes.
    static func bytes(
        _ raw: UnsafePointer<UInt8>?,
        _ count: UInt32,
        most: Int,
        _ what: String
    ) throws(TableFault) -> [UInt8] {
        guard count <= most else { throw TableFault("\(what) has \(count) bytes; at most \(most) are allowed") }
        guard count > 0 else { return [] }
        guard let raw = unsafe raw else { throw TableFault("\(what) has \(count) bytes at NULL") }
        return unsafe Array(UnsafeBufferPointer(start: raw, count: Int(count)))
    }

    /// Reads an array; `element` reads each entry.
    static func array<Raw, Value>(
        _ raw: UnsafePointer<Raw?>?,
        count: UInt32,
        limit: ClosedRange<Int>,
        _ what: String,
        _ element: (Raw, String) throws(TableFault) -> Value
    ) throws(TableFault) -> [Value] {
        guard limit.contains(Int(count)) else {
            throw TableFault("it has \(count) \(what); \(limit.lowerBound) to \(limit.upperBound) are allowed")
        }
        guard count > 0 else { return [] }
        guard let raw = unsafe raw, unsafe isAligned(raw) else {
            throw TableFault("its list of \(what) is NULL or misaligned")
        }
        var values: [Value] = []
        for index in 0..<Int(count) {
            guard let pointer = unsafe raw[index] else { throw TableFault("entry \(index) of its \(what) is NULL") }
            values.append(try element(pointer, "entry \(index) of its \(what)"))
        }
        return values
    }

    /// Copies a structure of any minor version: missing members become zero, additional ones are ignored.
    ///
    /// - Parameters:
    ///   - raw: The library's structure.
    ///   - zero: A structure of zeros.
    ///   - sizeOffset: The offset of the size member.
    ///   - least: The size in version 1.0, in bytes.
    ///   - what: The structure's name in errors.
    /// - Returns: A copy.
    /// - Throws: ``TableFault`` if the size is impossible.
    static func structure<Raw: BitwiseCopyable>(
        _ raw: UnsafePointer<Raw>,
        _ zero: Raw,
        sizeOffset: Int = 0,
        least: Int,
        _ what: String
    ) throws(TableFault) -> Raw {
        guard unsafe isAligned(raw) else { throw TableFault("\(what) is misaligned") }
        let size = unsafe Int(UnsafeRawPointer(raw).load(fromByteOffset: sizeOffset, as: UInt32.self))
        guard size >= least else { throw TableFault("\(what) has a struct_size of \(size) instead of \(least)") }
        guard size <= largestStructure else {
            throw TableFault("\(what) has an impossible struct_size of \(size)")
        }
        var copy = zero
        unsafe memcpy(&copy, raw, min(size, MemoryLayout<Raw>.size))
        return copy
    }

    static func isAligned<Raw>(_ raw: UnsafePointer<Raw>) -> Bool {
        UInt(bitPattern: raw) % UInt(MemoryLayout<Raw>.alignment) == 0
    }

    /// Reads a duration in milliseconds; `nil` for 0.
    static func duration(_ milliseconds: UInt64, _ what: String) throws(TableFault) -> Duration? {
        guard milliseconds > 0 else { return nil }
        guard milliseconds <= UInt64(ProfileRules.longestDuration / .milliseconds(1)) else {
            throw TableFault("\(what) of \(milliseconds) ms is longer than 30 days")
        }
        return .milliseconds(Int64(milliseconds))
    }
}
