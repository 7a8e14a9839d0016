import GattherdGATT
package import GattherdModel

/// A skeleton of a profile of advertisements, to be completed by its author.
package struct AdvertisementSkeleton: Sendable {
    /// The values of one length and source.
    private struct Frame {
        let source: AdvertisementSource
        var values: [[UInt8]]
        var stream = ""

        var length: Int { values.first?.count ?? 0 }

        /// The values as those of a characteristic.
        var characteristic: SkeletonCharacteristic {
            var characteristic = SkeletonCharacteristic(service: 0xFFF0, uuid: 0xFFF1)
            characteristic.values = values
            return characteristic
        }
    }

    /// The maximum number of frames, and tests of each.
    private static let (mostFrames, mostTests) = (16, 16)

    private let name: String
    private let origin: String
    private let deviceName: String?
    private var frames: [Frame] = []

    /// - Parameters:
    ///   - name: The profile's name.
    ///   - origin: A description of the device.
    ///   - deviceName: Its local name; `nil` if unknown.
    ///   - frames: The received data of companies and services, oldest first.
    package init(
        name: String,
        origin: String,
        deviceName: String?,
        frames: [(source: AdvertisementSource, octets: [UInt8])]
    ) {
        (self.name, self.origin, self.deviceName) = (name, origin, deviceName)
        for (source, octets) in frames where !octets.isEmpty { add(octets, from: source) }
        for index in self.frames.indices { self.frames[index].stream = index == 0 ? "data" : "data_\(index + 1)" }
    }

    private mutating func add(_ octets: [UInt8], from source: AdvertisementSource) {
        if let index = frames.firstIndex(where: { $0.source == source && $0.length == octets.count }) {
            if !frames[index].values.contains(octets) { frames[index].values.append(octets) }
        } else if frames.count < Self.mostFrames {
            frames.append(Frame(source: source, values: [octets]))
        }
    }

    /// The text of the file: a valid profile that passes its tests.
    package var text: String {
        (heading + model + ["advertisement:"] + frames.flatMap(entry)).joined(separator: "\n") + "\n"
    }

    private var heading: [String] {
        [
            "# A profile of advertisements of \(ProfileSkeleton.comment(origin)), created by `gattherd profile new`.",
            "# Types, names and units below are guesses: correct them, then run",
            "#   gattherd profile check \(name).yaml && gattherd profile test \(name).yaml",
            "# The format is described in docs/advertisements.md.",
            "contract: 1",
            "profile: \(name)",
            "title: \(ProfileSkeleton.quoted(name))",
        ]
    }

    /// The traits by which the device is recognised.
    private var model: [String] {
        guard let first = frames.first else { return [] }
        let title = ProfileSkeleton.quoted(deviceName.flatMap { $0.isEmpty ? nil : $0 } ?? name)
        let called = deviceName.flatMap { $0.isEmpty ? nil : ", name: \(ProfileSkeleton.quoted($0))" } ?? ""
        return [
            "# In the name, '*' stands for what differs from device to device.",
            "identify:",
            "  - {brand: Unknown, model: \(title)\(called), \(Self.key(first.source))}",
        ]
    }

    private func entry(_ frame: Frame) -> [String] {
        let field = SkeletonField.fields(of: frame.characteristic).first ?? SkeletonField(type: "bytes")
        let lines = [
            "  # \(frame.length) byte\(frame.length == 1 ? "" : "s"). \(Self.changes(in: frame.values))",
            "  - \(Self.key(frame.source))",
            "    length: \(frame.length)",
            "    stream: \(frame.stream)",
            "    fields:",
        ]
        let doubt = field.doubt.map { ["      # \($0)"] } ?? []
        let tests = frame.values.prefix(Self.mostTests).map { value in
            "      - {hex: \"\(ProfileSkeleton.spaced(value))\", \(expectation(value, field, frame.stream))}"
        }
        return lines + doubt + ["      - {metric: \(frame.stream), type: \(field.type)}", "    tests:"] + tests
    }

    /// Returns the value that the guessed field has.
    private func expectation(_ value: [UInt8], _ field: SkeletonField, _ metric: String) -> String {
        let text = """
            contract: 1
            profile: guess
            services: [fff0]
            characteristics:
              - {uuid: fff1, stream: guess, subscribe: notify, fields: [{metric: \(metric), type: \(field.type)}]}
            """
        guard let profile = try? ProfileCompiler.compile(Array(text.utf8), origin: "guess"),
            let sample = try? ProfileTools.decode(value, characteristic: 0, of: profile).first
        else { return "reject: true" }
        return "expect: {\(metric): \(String(decoding: JSONWriter.bytes { $0.value(sample.value) }, as: UTF8.self))}"
    }

    private static func key(_ source: AdvertisementSource) -> String {
        switch source {
        case .manufacturer(let company):
            "manufacturer: 0x" + Hexadecimal.text(UInt8(company >> 8), isUppercase: true)
                + Hexadecimal.text(UInt8(truncatingIfNeeded: company), isUppercase: true)
        case .serviceData(let uuid): "service_data: \(uuid)"
        }
    }

    /// Describes the bytes that differ between the values.
    private static func changes(in values: [[UInt8]]) -> String {
        guard let first = values.first, values.count > 1 else { return "There is one value." }
        let changing = first.indices.filter { index in values.contains { $0[index] != first[index] } }
        return "In \(values.count) values, the bytes \(changing.map(String.init).joined(separator: ", ")) differ."
    }
}
