/// What holds for every profile, native or declarative.
enum ProfileRules {
    static let longestName = 64
    /// The keys that every reading has.
    static let reservedMetrics = ["seq", "ts", "source", "stored"]
    /// The topics that every device has.
    static let reservedStreams = ["availability", "connection"]
    /// A pause between two reads.
    static let pollRange: ClosedRange<Duration> = .milliseconds(100) ... .seconds(86_400)
    /// For silences and throttles.
    static let longestDuration: Duration = .seconds(30 * 86_400)

    /// A profile's name: `[a-z0-9_-]+`.
    static func isSlug(_ name: String) -> Bool {
        isName(name) { isWordOctet($0) || $0 == UInt8(ascii: "-") }
    }

    /// The name of a stream, a metric or a control: `[a-z0-9_]+`.
    static func isIdentifier(_ name: String) -> Bool {
        isName(name, isWordOctet)
    }

    private static func isName(_ name: String, _ isAllowed: (UInt8) -> Bool) -> Bool {
        (1...longestName).contains(name.utf8.count) && name.utf8.allSatisfy(isAllowed)
    }

    private static func isWordOctet(_ octet: UInt8) -> Bool {
        switch octet {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
        default: false
        }
    }
}
