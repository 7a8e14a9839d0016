import GattherdGATT

/// Generated names of streams.
enum StreamName {
    private static let longest = 40

    /// Makes a name from the first usable one of `words`, else from the assigned name, else from the UUID.
    ///
    /// - Parameters:
    ///   - words: Texts from the device.
    ///   - uuid: The characteristic's.
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
