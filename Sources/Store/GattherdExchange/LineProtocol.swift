import GattherdModel

/// The syntax of InfluxDB's line protocol, version 2.
enum LineProtocol {
    private static let inMeasurement: Set<UInt8> = [UInt8(ascii: ","), UInt8(ascii: " ")]
    static let inTag: Set<UInt8> = [UInt8(ascii: ","), UInt8(ascii: " "), UInt8(ascii: "=")]
    /// The start of a measurement whose name begins with `#`; other readers keep the backslash.
    static let escapedComment: [UInt8] = [backslash, UInt8(ascii: "#")]
    private static let backslash = UInt8(ascii: "\\")

    /// Formats a value for the text after `=`; `nil` if the protocol cannot represent it.
    static func field(_ value: SampleValue) -> String? {
        switch value {
        case .integer(let number): "\(number)i"
        case .real(let number): number.isFinite ? "\(number)" : nil
        case .boolean(let flag): flag ? "true" : "false"
        case .text(let text): quoted(text)
        case .null: nil
        }
    }

    /// Writes a name or a tag's value; replaces line breaks, which are not allowed there, by spaces.
    static func escape(_ text: String, _ special: Set<UInt8>, to octets: inout [UInt8]) {
        for octet in text.utf8 {
            let written = octet == UInt8(ascii: "\n") ? UInt8(ascii: " ") : octet
            if written == backslash || special.contains(written) { octets.append(backslash) }
            octets.append(written)
        }
    }

    /// Writes the measurement at the start of a line.
    static func measure(_ name: String, to octets: inout [UInt8]) {
        if name.utf8.first == UInt8(ascii: "#") { octets.append(backslash) }
        escape(name, inMeasurement, to: &octets)
    }

    private static func quoted(_ text: String) -> String {
        let octets = text.utf8.flatMap { octet in
            octet == UInt8(ascii: "\"") || octet == backslash ? [backslash, octet] : [octet]
        }
        return "\"" + String(decoding: octets, as: UTF8.self) + "\""
    }
}

/// The units of timestamps in line protocol.
public enum TimePrecision: String, CaseIterable, Sendable {
    case ns, us, ms, s

    /// Returns the instant; `nil` if it overflows a count of microseconds.
    func instant(_ number: Int64) -> Timestamp? {
        let factors: [Self: Int64] = [.us: 1, .ms: 1000, .s: 1_000_000]
        guard let factor = factors[self] else {
            return Timestamp(microseconds: number / 1000 - (number % 1000 < 0 ? 1 : 0))
        }
        let (microseconds, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow ? nil : Timestamp(microseconds: microseconds)
    }
}
