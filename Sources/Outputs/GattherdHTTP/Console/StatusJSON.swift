import FoundationEssentials
import GattherdModel

/// The status as the command line's `--json` writes it.
enum StatusJSON {
    /// Any part of a status; keys are in alphabetical order.
    static func octets(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(value)).map { Array($0) } ?? Array("null".utf8)
    }

    /// The members of an object, without its braces.
    static func members(_ value: some Encodable) -> ArraySlice<UInt8> {
        octets(value).dropFirst().dropLast()
    }
}
