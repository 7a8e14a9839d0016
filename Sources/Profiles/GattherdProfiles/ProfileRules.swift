/// Limits and names that apply to native and declarative profiles.
enum ProfileRules {
    static let longestName = 64
    /// The fixed keys of readings.
    static let reservedMetrics = ["seq", "ts", "source", "stored"]
    /// The fixed topics of devices.
    static let reservedStreams = ["availability", "connection"]
    /// The allowed polling periods.
    static let pollRange: ClosedRange<Duration> = .milliseconds(100) ... .seconds(86_400)
    /// The allowed time limits of a device's answers.
    static let answerTimes: ClosedRange<Duration> = .milliseconds(100) ... .seconds(300)
    /// The maximum of silence limits and throttles.
    static let longestDuration: Duration = .seconds(30 * 86_400)

    /// True for a valid profile name: `[a-z0-9_-]+`.
    static func isSlug(_ name: String) -> Bool {
        isName(name) { isWordOctet($0) || $0 == UInt8(ascii: "-") }
    }

    /// True for a valid name of a stream, a metric or a control: `[a-z0-9_]+`.
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
