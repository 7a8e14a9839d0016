import GattherdModel
import GattherdYAML

/// Turns the list of fields of one characteristic into its program and its metrics.
struct FieldCompiler {
    static let mostFields = 256
    private static let mostMetrics = 64

    private(set) var program = DecodeProgram()
    private(set) var metrics: [MetricDescriptor] = []
    private var names = FieldNames()
    /// Where a field stands that takes the rest of the payload whatever the flags say.
    private var restTaken: YAMLPosition?
    private let findings: Findings

    init(_ findings: Findings) {
        self.findings = findings
    }

    mutating func add(_ node: YAMLNode) {
        guard let field = MappingReader(node, title: "a field", findings: findings) else { return }
        defer { field.finish() }
        let kinds = ["metric", "flags", "skip"].filter { field.has($0) }
        guard kinds.count == 1 else {
            return field.report("a field has exactly one of 'metric', 'flags' and 'skip'")
        }
        switch kinds[0] {
        case "flags": addFlags(field)
        case "skip": addSkip(field)
        default: addMetric(field)
        }
        program.registerCount = names.count
    }

    private mutating func addFlags(_ field: MappingReader) {
        let condition = condition(field)
        guard let name = field.required("flags", .identifier), let type = field.required("type", .type) else { return }
        guard let width = type.width, type.isInteger, width <= 7 else {
            return field.report("'flags' must be whole numbers of at most 56 bits, such as u8 or u16le", at: "type")
        }
        if metrics.contains(where: { $0.name == name }) {
            field.report("'\(name)' is a metric already; give the flags another name", at: "flags")
        }
        consume(field, takesRest: false)
        var step = DecodeProgram.Step(.read(type), conversion: program.add(Conversion(name: name)))
        step.condition = condition
        step.register = names.add(name, bits: Int64(8 * width))
        program.add(step)
    }

    private mutating func addSkip(_ field: MappingReader) {
        let condition = condition(field)
        guard let count = field.required("skip", .integer(1...512)) else { return }
        consume(field, takesRest: false)
        var step = DecodeProgram.Step(.skip(Int(count)), conversion: program.add(Conversion(name: "skip")))
        step.condition = condition
        program.add(step)
    }

    private mutating func addMetric(_ field: MappingReader) {
        let condition = condition(field)
        let name = field.required("metric", .identifier)
        let source = field.has("from") ? part(field) : read(field)
        let format = ValueFormat(field, type: source?.type, isFlag: source?.isFlag ?? false)
        let count = count(field)
        guard let name, let source, let format else { return }
        let metric = MetricDescriptor(name: name, unit: format.unit, kind: format.kind, isRepeated: count != nil)
        guard let index = index(of: metric, field) else { return }

        var step = DecodeProgram.Step(source.action, conversion: program.add(format.conversion(named: name)))
        step.condition = condition
        step.length = format.length
        step.metric = index
        if let count { step.count = count }
        if case .read(let type) = source.action {
            takeOctets(of: type, &step, field)
            if type.isInteger, count == nil, let width = type.width, width <= 7 {
                step.register = names.add(name, bits: Int64(8 * width))
            }
        }
        program.add(step)
    }

    private mutating func takeOctets(of type: FieldType, _ step: inout DecodeProgram.Step, _ field: MappingReader) {
        let isOpen = type.width == nil && step.length == nil
        var takesRest = isOpen
        if case .rest = step.count { takesRest = true }
        if case .once = step.count {
        } else if isOpen {
            field.report("a repeated text needs a 'length'", at: "repeat")
        }
        consume(field, takesRest: takesRest && step.condition == nil)
    }

    /// The position of a metric, which is new or must be the same again.
    private mutating func index(of metric: MetricDescriptor, _ field: MappingReader) -> Int? {
        if ProfileRules.reservedMetrics.contains(metric.name) {
            field.report("'\(metric.name)' is a key that every reading has; give the metric another name", at: "metric")
            return nil
        }
        if let index = metrics.firstIndex(where: { $0.name == metric.name }) {
            guard metrics[index] == metric else {
                field.report("metric '\(metric.name)' has another unit, kind or repetition above", at: "metric")
                return nil
            }
            return index
        }
        guard names[metric.name] == nil else {
            field.report("flags are called '\(metric.name)' already; give the metric another name", at: "metric")
            return nil
        }
        guard metrics.count < Self.mostMetrics else {
            field.report("a characteristic has at most \(Self.mostMetrics) metrics", at: "metric")
            return nil
        }
        metrics.append(metric)
        return metrics.count - 1
    }

    /// A field of the payload.
    private func read(_ field: MappingReader) -> (action: DecodeProgram.Step.Action, type: FieldType?, isFlag: Bool)? {
        field.required("type", .type).map { (.read($0), $0, false) }
    }

    /// Some bits of an earlier field.
    private func part(_ field: MappingReader) -> (action: DecodeProgram.Step.Action, type: FieldType?, isFlag: Bool)? {
        field.forbid(["type", "repeat", "length"], "has no meaning beside 'from', which takes no octets")
        guard let node = field.node("from") else { return nil }
        guard let text = node.text else {
            findings.report("this is \(node.kind); expected an earlier field, such as f.1 or f[3:0]", at: node.position)
            return nil
        }
        do throws(ConditionParser.Failure) {
            let (operand, isFlag) = try ConditionParser.field(text, names)
            return (.part(operand, isFlag: isFlag), nil, isFlag)
        } catch {
            findings.report("'\(text)': \(error.reason)", at: node.position(ofOffset: error.offset))
            return nil
        }
    }

    private mutating func condition(_ field: MappingReader) -> Int? {
        guard let node = field.node("when") else { return nil }
        guard let text = node.text else {
            findings.report("this is \(node.kind); expected a condition, such as \"f.0 & !f.1\"", at: node.position)
            return nil
        }
        do throws(ConditionParser.Failure) {
            return try ConditionParser.condition(text, names, into: &program.conditions)
        } catch {
            findings.report("'\(text)': \(error.reason)", at: node.position(ofOffset: error.offset))
            return nil
        }
    }

    /// How often the field is there; `nil`: once, and not as a list.
    private func count(_ field: MappingReader) -> DecodeProgram.Step.Count? {
        guard let node = field.node("repeat") else { return nil }
        let text = node.text ?? ""
        if text == "rest" { return .rest }
        if let count = Integers.parse(text), (1...512).contains(count) { return .times(Int(count)) }
        if let earlier = names[text] { return .register(earlier.register) }
        let reason =
            ProfileRules.isIdentifier(text) && Integers.parse(text) == nil
            ? names.unknown(text) : "'\(text)' is no count"
        findings.report("\(reason); expected rest, a number from 1 to 512, or an earlier field", at: node.position)
        return nil
    }

    /// Notes that the field takes octets; after one that takes all there are none.
    private mutating func consume(_ field: MappingReader, takesRest: Bool) {
        if let restTaken {
            field.report("no octets are left for this field: the one in line \(restTaken.line) takes the rest")
        }
        if takesRest { restTaken = field.node.position }
    }
}

extension YAMLNode {
    /// Where a character of a scalar stands; a text of several lines is pointed to as a whole.
    func position(ofOffset offset: Int) -> YAMLPosition {
        guard case .scalar(_, let isPlain) = content, position.line == end.line else { return position }
        return YAMLPosition(line: position.line, column: position.column + offset + (isPlain ? 0 : 1))
    }
}
