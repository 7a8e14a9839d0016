import GattherdGATT

/// Names for streams that nobody has named.
enum StreamName {
    private static let longest = 40

    /// The first of `words` of which something is left, else what the Bluetooth SIG calls it, else its number.
    ///
    /// - Parameters:
    ///   - words: From the device.
    ///   - uuid: The characteristic's.
    ///   - taken: Names that cannot be given; the new one is added.
    ///   - suffix: What comes after the name.
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

    /// Words of a-z and 0-9.
    private static func slug(_ text: String) -> String {
        let words = text.lowercased().utf8.split { octet in
            !(UInt8(ascii: "a")...UInt8(ascii: "z")).contains(octet)
                && !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(octet)
        }
        return String(words.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "_").prefix(longest))
    }
}
