import GattherdModel

/// The texts of the Device Information Service, by device.
struct DeviceFacts {
    /// The profile that reads the service.
    private static let profile = "device-information"
    /// The longest text that is kept, in bytes.
    private static let longest = 200
    /// The member of a description for each metric, in the order of writing.
    private static let members = [
        ("manufacturer_name", "manufacturer"), ("model_number", "model"), ("hardware_revision", "hardware"),
        ("firmware_revision", "firmware"), ("software_revision", "software"),
    ]

    private var facts: [String: [String: String]] = [:]

    /// True if a stream has facts.
    static func contains(_ stream: StreamDefinition) -> Bool { stream.profile == profile }

    /// The texts of a device, with their members of a description.
    subscript(device: String) -> [(member: String, text: String)] {
        guard let texts = facts[device] else { return [] }
        return Self.members.compactMap { metric, member in texts[metric].map { (member, $0) } }
    }

    /// Records the facts of a reading; returns true if one is new.
    mutating func record(_ reading: JournalReading) -> Bool {
        guard Self.contains(reading.stream) else { return false }
        var isNew = false
        for sample in reading.samples where reading.stream.metrics.indices.contains(sample.metric) {
            let metric = reading.stream.metrics[sample.metric].name
            guard case .text(let text) = sample.value, !text.isEmpty,
                Self.members.contains(where: { $0.0 == metric })
            else { continue }
            let fact = text.cut(toBytes: Self.longest)
            let old = facts[reading.stream.device, default: [:]].updateValue(fact, forKey: metric)
            isNew = isNew || old != fact
        }
        return isNew
    }

    mutating func remove(_ device: String) {
        facts[device] = nil
    }
}

/// The payload of `<device>/description`.
extension DeviceDescription {
    /// The version of the format; new members do not change it.
    private static let schema = 1

    /// Writes the JSON object with the device's streams, controls and facts.
    ///
    /// - Parameters:
    ///   - topics: The topics of the gateway.
    ///   - batched: The streams that publish arrays of readings.
    ///   - facts: The texts of its Device Information Service, by member.
    /// - Returns: The payload.
    func payload(topics: Topics, batched: Set<String>, _ facts: [(member: String, text: String)]) -> [UInt8] {
        JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("schema")
            writer.integer(Self.schema)
            writer.members([("device", .text(device)), ("address", .text(address))])
            writer.members(facts.map { ($0.member, .text($0.text)) })
            writer.key("profiles")
            writer.list(profiles) { $0.string($1) }
            writer.key("streams")
            writer.list(streams) { writer, stream in
                let topic = topics.reading(device, stream.name)
                stream.write(topic: topic, isBatched: batched.contains(stream.name), to: &writer)
            }
            writer.key("controls")
            writer.list(controls) { $1.write(of: device, topics, to: &$0) }
            writer.endObject()
        }
    }
}

extension DeviceDescription.Stream {
    fileprivate func write(topic: String, isBatched: Bool, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.members([("name", .text(name)), ("topic", .text(topic)), ("batch", .boolean(isBatched))])
        writer.key("metrics")
        writer.list(metrics) { writer, metric in
            writer.object([
                ("name", .text(metric.name)), ("unit", metric.unit.map { .text($0) } ?? .null),
                ("kind", .text(metric.kind.rawValue)), ("repeated", .boolean(metric.isRepeated)),
            ])
        }
        writer.endObject()
    }
}

extension ControlDescriptor {
    fileprivate func write(of device: String, _ topics: Topics, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.members([
            ("name", .text(name)), ("topic", .text(topics.set(device, name))),
            ("result", .text(topics.result(device, name))), ("type", .text(kind.name)),
        ])
        switch kind {
        case .integer(let range):
            writer.members([
                ("min", .integer(range.lowerBound)), ("max", .integer(range.upperBound)), ("step", .integer(1)),
            ])
        case .real(let range): writer.members([("min", .real(range.lowerBound)), ("max", .real(range.upperBound))])
        case .choice(let labels):
            writer.key("options")
            writer.list(labels) { $0.string($1) }
        case .boolean, .trigger: break
        }
        writer.members([("unit", unit.map { .text($0) } ?? .null), ("stream", echo.map { .text($0) } ?? .null)])
        writer.endObject()
    }
}

extension ControlKind {
    /// The name of the type of its values.
    fileprivate var name: String {
        switch self {
        case .integer: "integer"
        case .real: "number"
        case .boolean: "boolean"
        case .choice: "choice"
        case .trigger: "trigger"
        }
    }
}
