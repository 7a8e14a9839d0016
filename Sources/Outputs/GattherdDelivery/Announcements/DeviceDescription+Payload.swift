import GattherdModel

/// The payload of `<device>/description`.
extension DeviceDescription {
    /// The version of the format; new members do not change it.
    private static let schema = 1

    /// Writes the JSON object with the device's streams, controls and facts.
    ///
    /// - Parameters:
    ///   - topics: The topics of the gateway.
    ///   - batched: The streams that publish arrays of readings.
    ///   - facts: The texts of its Device Information Service.
    /// - Returns: The payload.
    func payload(topics: Topics, batched: Set<String>, _ facts: DeviceFacts.Texts) -> [UInt8] {
        JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("schema")
            writer.integer(Self.schema)
            writer.members([("device", .text(device)), ("address", .text(address))])
            writer.texts(facts.described)
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
