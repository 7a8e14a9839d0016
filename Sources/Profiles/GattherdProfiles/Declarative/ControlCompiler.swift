import GattherdModel
import GattherdYAML

/// A compiled control.
struct CompiledControl: Sendable {
    let descriptor: ControlDescriptor
    let encoding: ControlEncoding
    let frame: ControlFrame
    /// The position in the file, for checks at the end.
    let position: YAMLPosition
    var vectors: [ControlVector]
}

/// Compiles one entry of `controls`.
struct ControlCompiler {
    private let reader: MappingReader

    init(_ reader: MappingReader) {
        self.reader = reader
    }

    func compile() -> CompiledControl? {
        defer { reader.finish() }
        let name = reader.required("name", .identifier)
        let uuid = reader.required("uuid", .uuid)
        let content = reader.has("trigger") ? trigger() : value()
        let service = reader.value("service", .uuid)
        let unit = reader.value("unit", .words)
        let isAcknowledged = reader.value("response", .boolean) ?? true
        let throttle = reader.value("throttle", .duration(.milliseconds(1)...ProfileRules.longestDuration))
        let echo = reader.value("echo", .identifier)
        let prefix = reader.value("prefix", .octets) ?? []
        let suffix = reader.value("suffix", .octets) ?? []
        let check = WrittenChecksum(reader)
        let vectors = ControlVectorReader.read(reader)
        guard let name, let uuid, let content else {
            reader.abandon()
            return nil
        }
        check.check(count: prefix.count + content.encoding.width + suffix.count)
        let descriptor = ControlDescriptor(
            name: name,
            kind: content.kind,
            service: service,
            characteristic: uuid,
            unit: unit,
            isAcknowledged: isAcknowledged,
            throttle: throttle,
            echo: echo,
            answer: AnswerCompiler.answer(reader, writtenTo: uuid, in: service)
        )
        return CompiledControl(
            descriptor: descriptor,
            encoding: content.encoding,
            frame: ControlFrame(prefix: prefix, suffix: suffix, checksum: check.checksum),
            position: reader.position(of: reader.has("echo") ? "echo" : "name"),
            vectors: vectors
        )
    }

    private func trigger() -> (kind: ControlKind, encoding: ControlEncoding)? {
        reader.forbid(
            ["type", "range", "enum", "scale", "offset", "prefix", "suffix"],
            "cannot be combined with 'trigger'"
        )
        return reader.required("trigger", .octets).map { (.trigger, .fixed($0)) }
    }

    private func value() -> (kind: ControlKind, encoding: ControlEncoding)? {
        guard reader.has("type") else {
            reader.report("a control needs 'type': an integer, f32, f64 or bool; or 'trigger': fixed bytes")
            return nil
        }
        guard let type = reader.required("type", .type) else { return nil }
        let labels = LabelReader.labels(reader, "enum", type.isInteger, type.integerRange)
        let scale = ScaleReader.scale(reader)
        let range = ScaleReader.range(reader, "range")
        if let labels {
            reader.forbid(["scale", "offset", "range"], "cannot be combined with 'enum'")
            return choice(labels, type)
        }
        guard let scale else { return nil }
        switch type {
        case .boolean:
            reader.forbid(["scale", "offset", "range"], "has no meaning for a bool")
            return (.boolean, .boolean)
        case .integer: return integer(type, scale, range)
        case .real: return real(type, scale, range)
        case .sfloat, .float, .dateTime, .date, .uuid, .text, .terminatedText, .wideText, .decimal, .octets:
            reader.report("a control is an integer, f32, f64 or bool, or has an 'enum' or a 'trigger'", at: "type")
            return nil
        }
    }

    private func choice(_ labels: [Conversion.Label], _ type: FieldType) -> (ControlKind, ControlEncoding)? {
        if let twice = labels.map(\.text).firstDuplicate {
            reader.report("two values have the label '\(twice)'", at: "enum")
            return nil
        }
        return (.choice(labels.map(\.text)), .choice(labels.map(\.raw), type))
    }

    private func integer(
        _ type: FieldType,
        _ scale: Scale,
        _ range: ClosedRange<Double>?
    ) -> (ControlKind, ControlEncoding)? {
        guard let raw = type.integerRange else { return nil }
        let ends = [Double(raw.lowerBound), Double(raw.upperBound)].map { scale.apply(to: $0) }.sorted()
        let whole = ends[0]...ends[1]
        let allowed = range ?? whole
        guard whole.contains(allowed.lowerBound), whole.contains(allowed.upperBound) else {
            reader.report(
                "the range goes beyond what the type can hold: \(whole.lowerBound) to \(whole.upperBound)",
                at: "range"
            )
            return nil
        }
        guard scale.isIdentity else { return (.real(allowed), .scaled(type, scale)) }
        guard range != nil else { return (.integer(raw), .scaled(type, scale)) }
        guard let low = Int64(exactly: allowed.lowerBound), let high = Int64(exactly: allowed.upperBound) else {
            reader.report("the bounds of this range must be integers", at: "range")
            return nil
        }
        return (.integer(low...high), .scaled(type, scale))
    }

    private func real(
        _ type: FieldType,
        _ scale: Scale,
        _ range: ClosedRange<Double>?
    ) -> (ControlKind, ControlEncoding)? {
        guard let range else {
            reader.report("a control of this type needs a 'range', such as [0, 1]")
            return nil
        }
        return (.real(range), .scaled(type, scale))
    }
}
