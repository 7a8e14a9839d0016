import GattherdGATT
import GattherdModel

/// A skeleton of a declarative profile, to be completed by its author.
package struct ProfileSkeleton: Sendable {
    /// The maximum length of a comment line.
    private static let longestComment = 100

    let name: String
    /// A description of the source.
    let origin: String
    let named: [(characteristic: SkeletonCharacteristic, stream: String)]

    /// - Parameters:
    ///   - name: The profile's name.
    ///   - origin: A description of the source.
    ///   - characteristics: The device's characteristics; write-only ones become controls.
    package init(name: String, origin: String, characteristics: [SkeletonCharacteristic]) {
        self.name = name
        self.origin = origin
        var taken = Set(ProfileRules.reservedStreams + ProfileRules.reservedMetrics)
        named = characteristics.map { characteristic in
            (characteristic, StreamName.make([characteristic.description ?? ""], characteristic.uuid, &taken))
        }
    }

    /// True if a characteristic can be read, notified or written.
    package var isUseful: Bool { named.contains { $0.characteristic.hasValues || $0.characteristic.isWritable } }

    /// The text of the file: a valid profile that passes its tests.
    package var text: String { text(withTests: expectations()) }

    // MARK: - Parts

    private func text(withTests tests: [String: [String]]) -> String {
        let decoded = named.filter { $0.characteristic.hasValues }
        let written = named.filter { $0.characteristic.isWritable }
        var lines = heading
        if !decoded.isEmpty { lines.append("characteristics:") }
        for (characteristic, stream) in decoded {
            lines += entry(characteristic, stream, tests[stream] ?? [])
        }
        // Without readable characteristics the controls are not commented out.
        let prefix = decoded.isEmpty ? "" : "# "
        if !written.isEmpty {
            lines.append(
                "# Writable characteristics. Correct the types; docs/profiles.md, \"Controls\", lists all keys."
            )
            lines.append("\(prefix)controls:")
            lines += written.map { characteristic, stream in
                let response = characteristic.isCommand ? ", response: false" : ""
                let type = "type: \(SkeletonField.fields(of: characteristic).first?.control ?? "u8")"
                let place = service(characteristic)
                return "\(prefix)  - {name: \(stream), uuid: \(characteristic.uuid), \(place)\(type)\(response)}"
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private var heading: [String] {
        let services = services.map { uuid in
            "# \(uuid): \(uuid.assignedName ?? "not assigned by the Bluetooth SIG")"
        }
        return [
            "# A profile of \(Self.comment(origin)), created by `gattherd profile new`.",
            "# Types, names and units below are guesses: correct them, then run",
            "#   gattherd profile check \(name).yaml && gattherd profile test \(name).yaml",
            "# The format is described in docs/profiles.md.",
            "contract: 1",
            "profile: \(name)",
            "title: \(Self.quoted(name))",
        ] + services + ["services: [\(self.services.map(\.description).joined(separator: ", "))]"]
    }

    private var services: [BluetoothUUID] {
        var services: [BluetoothUUID] = []
        for (characteristic, _) in named where characteristic.hasValues || characteristic.isWritable {
            if !services.contains(characteristic.service) { services.append(characteristic.service) }
        }
        return services
    }

    private func entry(_ characteristic: SkeletonCharacteristic, _ stream: String, _ tests: [String]) -> [String] {
        let assigned = characteristic.uuid.assignedName.map { "\($0), " } ?? ""
        let described = characteristic.description.map { ", which the device calls \(Self.quoted($0))" } ?? ""
        var lines = ["  # \(assigned)\(characteristic.properties)\(Self.comment(described))"]
        lines += characteristic.remarks.map { "  # \(Self.comment($0))" }
        lines.append("  - uuid: \(characteristic.uuid)")
        if services.count > 1 { lines.append("    service: \(characteristic.service)") }
        lines.append("    stream: \(stream)")
        if characteristic.notifies || characteristic.indicates {
            lines.append("    subscribe: \(characteristic.notifies ? "notify" : "indicate")")
        }
        if characteristic.isReadable { lines.append("    read: true") }
        lines += request(characteristic)
        lines.append("    fields:")
        let fields = SkeletonField.fields(of: characteristic)
        for (index, field) in fields.enumerated() {
            if let doubt = field.doubt { lines.append("      # \(doubt)") }
            let metric = fields.count == 1 ? stream : "\(stream)_\(index + 1)"
            lines.append("      - {metric: \(metric), \(field.keys)}")
        }
        return lines + (tests.isEmpty ? ["    # tests: none yet; no value was received"] : ["    tests:"] + tests)
    }

    /// Returns a comment about requests, for a characteristic that may only answer.
    private func request(_ characteristic: SkeletonCharacteristic) -> [String] {
        let isSilent = characteristic.values.isEmpty && (characteristic.notifies || characteristic.indicates)
        let writable = named.map(\.characteristic).first { $0.isWritable && $0.service == characteristic.service }
        guard isSilent, let writable else { return [] }
        return [
            "    # It sent nothing. If the device answers requests:",
            "    # poll: {every: 30s, uuid: \(writable.uuid), write: \"01\"}",
        ]
    }

    private func service(_ characteristic: SkeletonCharacteristic) -> String {
        services.count > 1 ? "service: \(characteristic.service), " : ""
    }

    // MARK: - Tests

    /// Returns the results of the profile for the recorded values, by stream.
    private func expectations() -> [String: [String]] {
        let octets = Array(text(withTests: [:]).utf8)
        guard let profile = try? ProfileCompiler.compile(octets, origin: name) else { return [:] }
        var tests: [String: [String]] = [:]
        for (index, descriptor) in profile.characteristics.enumerated() {
            let values = named.first { $0.stream == descriptor.stream }?.characteristic.values ?? []
            var seen: Set<[UInt8]> = []
            tests[descriptor.stream] = values.filter { seen.insert($0).inserted }.map { value in
                "      - {hex: \"\(Self.spaced(value))\", \(expectation(value, index, profile))}"
            }
        }
        return tests
    }

    private func expectation(_ value: [UInt8], _ index: Int, _ profile: DeclarativeProfile) -> String {
        guard let samples = try? ProfileTools.decode(value, characteristic: index, of: profile) else {
            return "reject: true"
        }
        let members = samples.map { sample in
            let json = JSONWriter.bytes { $0.value(sample.value) }
            return "\(sample.metric.name): \(String(decoding: json, as: UTF8.self))"
        }
        return "expect: {\(members.joined(separator: ", "))}"
    }

    // MARK: - Words

    static func spaced(_ octets: [UInt8]) -> String {
        octets.map { Hexadecimal.text([$0].span).uppercased() }.joined(separator: " ")
    }

    /// Returns a text from a device as one line without control characters.
    static func comment(_ text: String) -> String {
        let line = text.unicodeScalars.map { scalar -> Character in
            let isPlain = scalar.properties.generalCategory != .control && !scalar.properties.isWhitespace
            return isPlain || scalar == " " ? Character(scalar) : " "
        }
        return String(line.prefix(longestComment))
    }

    static func quoted(_ text: String) -> String {
        String(decoding: JSONWriter.bytes { $0.string(comment(text)) }, as: UTF8.self)
    }
}

extension SkeletonField {
    /// The keys of the metric.
    fileprivate var keys: String {
        let more = [scale.map { "scale: \($0)" }, unit.map { "unit: \(ProfileSkeleton.quoted($0))" }]
        return (["type: \(type)"] + more.compactMap(\.self)).joined(separator: ", ")
    }

    /// The type of a control with such values.
    fileprivate var control: String {
        ["bytes", "utf8", "utf16", "sfloat", "float", "f32le", "f64le"].contains(type) ? "u8" : type
    }
}
