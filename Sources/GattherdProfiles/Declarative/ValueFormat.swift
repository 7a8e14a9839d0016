import GattherdModel
import GattherdYAML

/// What a field says about the meaning of its raw value.
struct ValueFormat {
    private static let kinds = MetricKind.allCases.map { (word: $0.rawValue, value: $0) }
    private static let plain = "has a meaning for numbers only"

    let unit: String?
    let kind: MetricKind
    /// Octets of a text; `nil`: the rest.
    let length: Int?
    private let unknown: [UInt64]
    private let labels: [Int64: String]?
    private let scale: Scale
    private let range: ClosedRange<Double>?

    /// - Parameters:
    ///   - field: The field's mapping.
    ///   - type: The field's type; `nil` for bits of an earlier field, or when it is wrong.
    ///   - isFlag: True for one bit of an earlier field.
    init?(_ field: MappingReader, type: FieldType?, isFlag: Bool) {
        let isNumber = type?.isNumber ?? !isFlag
        let labels = EnumReader.labels(field, type: type)
        let unit = field.value("unit", .words)
        if !isNumber { field.forbid(["scale", "offset", "range", "unknown"], Self.plain) }
        if labels != nil { field.forbid(["scale", "offset", "range", "unit"], "has no meaning beside 'enum'") }
        if type != .text && type != .octets { field.forbid(["length"], "is for the types utf8 and bytes") }
        guard let scale = ScaleReader.scale(field) else { return nil }
        self.unit = unit
        self.labels = labels.map { Dictionary($0) { first, _ in first } }
        self.scale = scale
        kind = field.value("kind", .choice(Self.kinds)) ?? (isNumber && labels == nil ? .gauge : .state)
        length = field.value("length", .integer(1...512)).map { Int($0) }
        unknown = UnknownReader.patterns(field, type: type)
        range = ScaleReader.range(field)
    }

    func conversion(named name: String) -> Conversion {
        var conversion = Conversion(name: name)
        conversion.unknown = unknown
        conversion.labels = labels
        conversion.scale = scale
        conversion.range = range
        return conversion
    }
}

/// Reads `scale`, `offset` and `range`.
enum ScaleReader {
    /// `nil` when it is wrong, which is reported.
    static func scale(_ field: MappingReader) -> Scale? {
        let scale = field.has("scale") ? field.value("scale", .number) : .one
        let offset = field.has("offset") ? field.value("offset", .number) : .zero
        guard let scale, let offset else { return nil }
        guard let both = Scale(scale: scale, offset: offset) else {
            field.report("scale and offset must be fractions of less than 53 bits, and the scale not 0", at: "scale")
            return nil
        }
        return both
    }

    /// `[lowest, highest]`, in the unit of the value.
    static func range(_ field: MappingReader) -> ClosedRange<Double>? {
        guard let node = field.node("range") else { return nil }
        guard let elements = node.elements, elements.count == 2 else {
            field.findings.report("a range is a list of its two ends, such as [0, 100]", at: node.position)
            return nil
        }
        let grammar = Grammar<Rational>.number
        guard let low = grammar.read(elements[0], field.findings), let high = grammar.read(elements[1], field.findings)
        else { return nil }
        guard low.value <= high.value else {
            field.findings.report("the lower end comes first", at: node.position)
            return nil
        }
        return low.value...high.value
    }
}

/// Reads `enum`.
enum EnumReader {
    private static let mostLabels = 256

    /// Raw values and their labels in the order of the text; `nil` when there is no `enum`.
    static func labels(_ field: MappingReader, type: FieldType?) -> [(Int64, String)]? {
        guard let node = field.node("enum") else { return nil }
        guard let members = node.members, !members.isEmpty, members.count <= mostLabels else {
            let reason = "labels are a mapping of 1 to \(mostLabels) raw values, such as {0: off, 1: on}"
            field.findings.report(reason, at: node.position)
            return []
        }
        if let type, !type.isInteger { field.report("'enum' is for whole numbers", at: "enum") }
        let range = type?.integerRange ?? 0...(.max)
        return members.compactMap { member in
            let raw = Grammar<Int64>.integer(range).read(member.key, field.findings)
            let label = Grammar<String>.words.read(member.value, field.findings)
            guard let raw, let label else { return nil }
            return (raw, label)
        }
    }
}

/// Reads `unknown`.
enum UnknownReader {
    /// The octets of the raw values that mean that the device does not know.
    static func patterns(_ field: MappingReader, type: FieldType?) -> [UInt64] {
        guard let node = field.node("unknown") else { return [] }
        return (node.elements ?? [node]).compactMap { pattern($0, type, field.findings) }
    }

    private static func pattern(_ node: YAMLNode, _ type: FieldType?, _ findings: Findings) -> UInt64? {
        let bits = Int64(8 * (type?.width ?? 8))
        let mask: UInt64 = bits == 64 ? .max : (1 << UInt64(bits)) - 1
        if bits == 64, let text = node.text, text.hasPrefix("0x"), let all = UInt64(text.dropFirst(2), radix: 16) {
            return all
        }
        let lowest = type?.integerRange?.lowerBound ?? 0
        let highest = bits == 64 ? Int64.max : Int64(mask)
        guard let raw = Grammar<Int64>.integer(lowest...highest).read(node, findings) else { return nil }
        return UInt64(bitPattern: raw) & mask
    }
}
