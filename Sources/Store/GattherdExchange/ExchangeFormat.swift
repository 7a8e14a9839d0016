import GattherdModel

/// The format of exported and imported samples, one line each.
public enum ExchangeFormat: String, CaseIterable, Sendable {
    /// JSON lines, with all properties of a sample.
    case json
    /// InfluxDB's line protocol, version 2: a point per sample.
    case line

    /// Creates the format that a file name's extension names.
    public init?(fileName: String) {
        switch fileName.split(separator: ".").last {
        case "json", "jsonl", "ndjson": self = .json
        case "lp", "line", "influx": self = .line
        default: return nil
        }
    }

    /// Detects the format from the first line of a text.
    public init(firstLine: some Collection<UInt8>) {
        let blank: Set<UInt8> = [UInt8(ascii: " "), UInt8(ascii: "\t")]
        self = firstLine.first { !blank.contains($0) } == UInt8(ascii: "{") ? .json : .line
    }
}

/// The reason why a line cannot be imported, and its remedy.
public struct ExchangeError: Error, Hashable, CustomStringConvertible {
    public let description: String
    /// True if the next lines may complete the line.
    let isIncomplete: Bool

    init(_ description: String, isIncomplete: Bool = false) {
        self.description = description
        self.isIncomplete = isIncomplete
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
