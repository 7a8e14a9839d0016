import FoundationEssentials
import GattherdModel

/// The status in the form of the command line's `--json`.
enum StatusJSON {
    /// Returns a part of a status as JSON with sorted keys.
    static func bytes(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(value)).map { Array($0) } ?? Array("null".utf8)
    }

    /// Returns the members of an object without its braces.
    static func members(_ value: some Encodable) -> ArraySlice<UInt8> {
        bytes(value).dropFirst().dropLast()
    }
}
