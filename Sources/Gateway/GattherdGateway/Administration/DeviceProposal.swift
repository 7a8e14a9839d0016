package import GattherdConfig
package import GattherdGATT
package import GattherdModel

/// The configuration of a new device.
package struct DeviceProposal: Hashable, Sendable {
    package var name: String
    package var address: BluetoothAddress
    /// The profiles to name; empty if every profile that matches the device's services may serve it.
    package var profiles: [String]
    /// Brand and model, for a comment.
    package var model: String?
    /// The name for people.
    package var title: String?
    /// The room or the place.
    package var area: String?
    /// The file with the key of encrypted advertisements.
    package var keyFile: String?

    package init(name: String, address: BluetoothAddress, profiles: [String]) {
        (self.name, self.address, self.profiles) = (name, address, profiles)
    }

    /// The lines of the configuration.
    package var text: String {
        var lines = ["devices:"]
        let comment = model.map { " # \($0)" } ?? ""
        lines.append("  - name: \(ConfigText.scalar(name))\(comment)")
        lines.append("    address: \(address)")
        if let title { lines.append("    title: \(ConfigText.scalar(title))") }
        if let area { lines.append("    area: \(ConfigText.scalar(area))") }
        if !profiles.isEmpty {
            lines.append("    profiles: [\(profiles.map(ConfigText.scalar).joined(separator: ", "))]")
        }
        if let keyFile { lines.append("    bind_key_file: \(ConfigText.scalar(keyFile))") }
        return lines.map { $0 + "\n" }.joined()
    }

    /// Makes the new file of the device.
    ///
    /// - Parameters:
    ///   - file: The configuration.
    ///   - origin: The author, for a comment.
    /// - Returns: The text with its path.
    package func source(in file: ConfigurationFile, by origin: String) -> ConfigSource {
        ConfigSource(name: file.fragment(named: name), text: "# Added by \(origin).\n" + text)
    }

    /// Returns a name that no device has, made of the first of `texts` that has letters or digits.
    package static func name(from texts: [String], taken: Set<String>) -> String {
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
}

/// A peripheral that was heard, or that is connected.
package struct HeardPeripheral: Sendable {
    package var address: BluetoothAddress
    package var name: String?
    /// The signal strength in dBm; `nil` for a connected peripheral, which does not advertise.
    package var rssi: Int?
    package var hasPrivateAddress = false
    /// The possible profiles, with the model if it is known; the best first.
    package var candidates: [Identification] = []

    package init(
        address: BluetoothAddress,
        name: String?,
        rssi: Int?,
        hasPrivateAddress: Bool = false,
        candidates: [Identification] = []
    ) {
        (self.address, self.name, self.rssi) = (address, name, rssi)
        (self.hasPrivateAddress, self.candidates) = (hasPrivateAddress, candidates)
    }

    /// Returns a name for it as a device: of its model, its own, or of its profile.
    package func proposedName(_ identity: Identification?, taken: Set<String>) -> String {
        let texts = [identity?.model?.description, name, identity?.profile].compactMap(\.self)
        return DeviceProposal.name(from: texts, taken: taken)
    }
}

extension Identification {
    /// The profiles that the configuration of the device must name.
    package var namedProfiles: [String] { isOptIn ? [profile] : [] }
}
