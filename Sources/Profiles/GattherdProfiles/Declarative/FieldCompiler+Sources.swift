import GattherdModel
import GattherdYAML

/// The source of a metric's value.
struct FieldSource {
    let action: DecodeProgram.Step.Action
    /// The type of its bytes; `nil` if it consumes none.
    var type: FieldType?
    /// True for a Boolean.
    var isBoolean = false
    /// The width of a signed earlier field, or of a signed range of its bits.
    var signedBits: Int?

    var takesOctets: Bool { type != nil }
    var isText: Bool {
        switch type {
        case .text, .terminatedText, .wideText, .octets, .decimal: true
        default: false
        }
    }
    /// True for a raw integer, which can have labels.
    var isWhole: Bool {
        switch action {
        case .read(let type): type.isInteger
        case .compute: true
        case .reinterpret, .formula, .increase, .aggregate, .skip, .ignore, .objects, .decrypt, .deltas, .group:
            false
        }
    }
    /// The range of a raw integer; `nil` if every `Int64` is possible.
    var rawRange: ClosedRange<Int64>? {
        guard let signedBits else { return type?.integerRange }
        return Int64.min >> (64 - signedBits)...Int64.max >> (64 - signedBits)
    }
    /// True if some raw values are neither numbers nor Booleans.
    var canBeSpecial: Bool {
        switch action {
        case .read(.sfloat), .read(.float), .read(.real), .read(.boolean), .read(.decimal), .reinterpret: true
        case .read, .compute, .formula, .increase, .aggregate, .skip, .ignore, .objects, .decrypt, .deltas, .group:
            false
        }
    }
    /// True if it can be scaled.
    var isNumber: Bool { type?.isNumber ?? !isBoolean }
    /// True if it is computed from metrics, which are scaled already.
    var isAggregate: Bool { if case .aggregate = action { true } else { false } }
    var isIncrease: Bool { if case .increase = action { true } else { false } }
    var isFormula: Bool { if case .formula = action { true } else { false } }
}

extension FieldCompiler {
    private static let sources = ["type", "from", "formula", "increase"] + Aggregate.allCases.map(\.rawValue)

    /// Reads the source, which exactly one key must give.
    mutating func source(_ field: MappingReader) -> FieldSource? {
        let keys = Self.sources.filter { field.has($0) }
        if keys.count > 1, keys.first == "type" {
            field.report("'\(keys[1])' cannot be combined with 'type': it consumes no bytes", at: keys[1])
            return nil
        }
        switch keys.first ?? "type" {
        case "type": return field.required("type", .type).map { FieldSource(action: .read($0), type: $0) }
        case "from": return computed(field)
        case "formula": return formula(field)
        case "increase": return increase(field)
        case let key: return Aggregate(rawValue: key).flatMap { aggregate($0, field) }
        }
    }

    /// Reads an expression over earlier fields.
    private mutating func computed(_ field: MappingReader) -> FieldSource? {
        guard let node = field.node("from") else { return nil }
        guard let text = node.text else {
            findings.report("this is \(node.kind); expected an earlier field, such as f.1 or f[3:0]", at: node.position)
            return nil
        }
        let isSigned = field.value("signed", .boolean) ?? false
        guard let position = compile(text, node) else { return nil }
        if field.has("as") { return reinterpreted(position, field) }
        guard isSigned else {
            return FieldSource(
                action: .compute(position, isBoolean: isBoolean(position)),
                isBoolean: isBoolean(position),
                signedBits: signedBits(position)
            )
        }
        guard var part = program.expressions.part(at: position), (2..<64).contains(part.width) else {
            field.report("only some bits of a field can be signed, such as f[11:0]", at: "signed")
            return nil
        }
        part.isSigned = true
        let action = DecodeProgram.Step.Action.compute(program.expressions.add(.part(part)), isBoolean: false)
        return FieldSource(action: action, signedBits: Int(part.width))
    }

    /// Reads a formula with real numbers over earlier fields.
    private mutating func formula(_ field: MappingReader) -> FieldSource? {
        guard let node = field.node("formula") else { return nil }
        guard let text = node.text else {
            findings.report("this is \(node.kind); expected a formula, such as 0.57 * level", at: node.position)
            return nil
        }
        return compile(text, node, isFormula: true).map { FieldSource(action: .formula($0)) }
    }

    /// Reads `as`, another type for the bits of an earlier field.
    private func reinterpreted(_ position: Int, _ field: MappingReader) -> FieldSource? {
        let types: [(word: String, value: FieldType)] = [
            ("sfloat", .sfloat), ("float", .float), ("f32", .real(octets: 4, isBigEndian: false)),
        ]
        guard let type = field.value("as", .choice(types)) else { return nil }
        return FieldSource(action: .reinterpret(position, type))
    }

    /// Returns the width of the signed field that an expression consists of; `nil` for another expression.
    private func signedBits(_ position: Int) -> Int? {
        guard let part = program.expressions.part(at: position), part.width == 64 else { return nil }
        return names.signedBits(in: part.register)
    }

    private func isBoolean(_ position: Int) -> Bool { program.expressions.isBoolean(at: position) }

    /// Reads `increase` and `over`, the growth of a counter per tick of a clock.
    private mutating func increase(_ field: MappingReader) -> FieldSource? {
        let counter = whole(field, "increase")
        let clock = field.has("over") ? whole(field, "over") : nil
        let stillCount = clock == nil ? nil : field.value("still", .integer(1...1000))
        let factor = field.has("times") ? whole(field, "times") : nil
        guard let counter, clock != nil || !field.has("over"), factor != nil || !field.has("times") else { return nil }
        let rule = Increase.Rule(
            counter: counter.register,
            counterBits: counter.bits,
            clock: clock?.register,
            clockBits: clock?.bits ?? 1,
            factor: factor?.register,
            stillCount: Int(stillCount ?? 3)
        )
        return FieldSource(action: .increase(rule, memory: program.increaseCount))
    }

    /// Reads the name of an earlier integer field that is not repeated.
    private func whole(_ field: MappingReader, _ key: String) -> FieldNames.Field? {
        guard let name = field.value(key, .identifier) else { return nil }
        guard names.has(name), let earlier = names[name] else {
            field.report(names.unknown(name), at: key)
            return nil
        }
        return earlier
    }

    private func aggregate(_ aggregate: Aggregate, _ field: MappingReader) -> FieldSource? {
        guard let name = field.value(aggregate.rawValue, .identifier) else { return nil }
        guard let index = metrics.firstIndex(where: { $0.name == name }) else {
            let known = metrics.map(\.name).joined(separator: ", ")
            field.report(
                "no earlier metric is called '\(name)'; \(known.isEmpty ? "there is none" : "there are \(known)")",
                at: aggregate.rawValue
            )
            return nil
        }
        return FieldSource(action: .aggregate(aggregate, of: index))
    }
}
