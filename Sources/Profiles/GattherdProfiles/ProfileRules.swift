import GattherdGATT

/// Limits and names that apply to native and declarative profiles.
enum ProfileRules {
    static let longestName = 64
    /// The fixed keys of readings.
    static let reservedMetrics = ["seq", "ts", "source", "stored"]
    /// The fixed topics of devices.
    static let reservedStreams = ["availability", "connection", "description", "lease"]
    /// The allowed polling periods.
    static let pollRange: ClosedRange<Duration> = .milliseconds(100) ... .seconds(86_400)
    /// The allowed periods of requests by writing.
    static let requestRange: ClosedRange<Duration> = .seconds(2) ... .seconds(86_400)
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

/// Generated names of streams.
enum StreamName {
    private static let longest = 40

    /// Creates a name from the first usable one of `words`, else from the assigned name, else from the UUID.
    ///
    /// - Parameters:
    ///   - words: Texts from the device.
    ///   - uuid: The UUID of the characteristic.
    ///   - taken: Names in use; the new one is added.
    ///   - suffix: The text after the name.
    /// - Returns: The name.
    static func make(
        _ words: [String],
        _ uuid: BluetoothUUID,
        _ taken: inout Set<String>,
        suffix: String = ""
    ) -> String {
        let number = uuid.description.split(separator: "-").first.map(String.init) ?? "value"
        let slugs = (words + [uuid.assignedName ?? "", "c_\(number)"]).map(slug)
        let base = (slugs.first { !$0.isEmpty } ?? "value") + suffix
        var name = base
        var count = 2
        while !taken.insert(name).inserted {
            name = "\(base)_\(count)"
            count += 1
        }
        return name
    }

    /// Returns lower-case words of a-z and 0-9, joined by `_`.
    private static func slug(_ text: String) -> String {
        let words = text.lowercased().utf8.split { octet in
            !(UInt8(ascii: "a")...UInt8(ascii: "z")).contains(octet)
                && !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(octet)
        }
        return String(words.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "_").prefix(longest))
    }
}
