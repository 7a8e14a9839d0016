import GattherdConfig
import GattherdGATT
import GattherdModel

/// The configuration of a new device.
struct DeviceProposal {
    let name: String
    let address: BluetoothAddress
    /// The profiles to name; empty if every profile that matches the device's services may serve it.
    let profiles: [String]
    /// Brand and model, for a comment.
    var model: String?
    /// The file with the key of encrypted advertisements.
    var keyFile: String?

    /// The lines of the configuration.
    var text: String {
        var lines = ["devices:"]
        let comment = model.map { " # \($0)" } ?? ""
        lines.append("  - name: \(Self.quoted(name))\(comment)")
        lines.append("    address: \(address)")
        if !profiles.isEmpty { lines.append("    profiles: [\(profiles.map(Self.quoted).joined(separator: ", "))]") }
        if let keyFile { lines.append("    bind_key_file: \(Self.quoted(keyFile))") }
        return lines.map { $0 + "\n" }.joined()
    }

    /// Returns a name that no device has, made of the first of `texts` that has letters or digits.
    static func name(from texts: [String], taken: Set<String>) -> String {
        let slugs = texts.lazy.map(slug).filter { !$0.isEmpty }
        let base = slugs.first ?? "device"
        guard taken.contains(base) || base == "bridge" else { return base }
        let numbers = (2...taken.count + 2).lazy.map { "\(base)-\($0)" }
        return numbers.first { !taken.contains($0) } ?? base
    }

    /// The longest proposed name, with room for a number.
    private static let longestName = 40

    /// Returns words of a-z and 0-9, joined by `-`.
    private static func slug(_ text: String) -> String {
        let words = text.lowercased().utf8.split { byte in
            !(UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                && !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
        let name = words.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "-").prefix(longestName)
        return String(name.hasSuffix("-") ? name.dropLast() : name)
    }

    /// Returns text as a YAML scalar of one line: plain if it cannot be read as anything else.
    private static func quoted(_ text: String) -> String {
        let isPlain = Slug.isValid(text) && text != "null" && !text.hasPrefix("-")
        return isPlain ? text : "'" + text.replacing("'", with: "''") + "'"
    }
}
