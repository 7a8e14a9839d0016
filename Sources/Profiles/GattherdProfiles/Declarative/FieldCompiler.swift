import GattherdModel
import GattherdYAML

/// Compiles the fields of a characteristic into a program and its metrics.
struct FieldCompiler {
    private static let maximumFields = 256
    private static let maximumMetrics = 128
    private static let kinds = ["metric", "flags", "skip", "fields", "objects", "decrypt", "deltas", "ignore"]

    var program = DecodeProgramDraft()
    private(set) var metrics: [MetricDescriptor] = []
    /// The flags to share with later characteristics.
    private(set) var shares: [(name: String, bits: Int64, signedBits: Int?, register: Int)] = []
    /// The source of each step of ``program``.
    private(set) var notes: [FieldNote] = []
    var names = FieldNames()
    let findings: ProfileFindings
    private let hasSender: Bool
    /// The position of a field that always consumes the rest of the payload.
    private var restTaken: YAMLPosition?
    private var isInGroup = false
    /// True if the group makes a list of each of its metrics.
    private var makesLists = false
    /// True if the group numbers its metrics instead of making lists.
    private var isNumbered = false
    /// True if the group, and so each of its fields, has a condition.
    private var isInConditional = false
    /// True if a value can be unknown for a reason without a reject.
    private var hasEmittedReasons = false
    /// The metrics with a field, by index; true if all of their fields have a condition.
    private var isConditional: [Int: Bool] = [:]

    /// - Parameters:
    ///   - findings: Receives the errors.
    ///   - shared: The values that other characteristics share, and options.
    ///   - hasSender: True for advertisements, whose sender has an address and perhaps a key.
    init(_ findings: ProfileFindings, _ shared: SharedValues, hasSender: Bool) {
        self.findings = findings
        self.hasSender = hasSender
        for value in shared.names { _ = names.add(value.name, bits: value.bits, signedBits: value.signedBits) }
        program.sharedCount = shared.names.count
        program.registerCount = names.count
    }

    /// Compiles the fields of a stream or of a group; reports the first one beyond the maximum.
    mutating func addFields(of owner: MappingReader) {
        let nodes = owner.elements("fields")
        for node in nodes.prefix(Self.maximumFields) { add(node) }
        guard let surplus = nodes.dropFirst(Self.maximumFields).first else { return }
        findings.report("a list of fields has at most \(Self.maximumFields)", at: surplus.position)
    }

    mutating func add(_ node: YAMLNode) {
        guard let field = MappingReader(node, .field, findings: findings) else { return }
        defer { field.finish() }
        let kinds = Self.kinds.filter { field.has($0) }
        guard kinds.count == 1 else {
            let words = Self.kinds.dropLast().map { "'\($0)'" }.joined(separator: ", ")
            field.abandon()
            return field.report("a field has exactly one of \(words) and 'ignore'")
        }
        switch kinds[0] {
        case "flags": addFlags(field)
        case "skip": addSkip(field)
        case "fields": addGroup(field)
        case "decrypt": addDecryption(field)
        case "objects": addObjects(field)
        case "ignore": addIgnore(field)
        case "deltas": addDeltas(field)
        default: addMetric(field)
        }
        program.registerCount = names.count
    }

    mutating func add(_ step: DecodeProgram.Step, _ field: MappingReader) {
        program.add(step)
        notes.append(FieldNote(field))
    }

    // MARK: - Kinds of fields

    private mutating func addFlags(_ field: MappingReader) {
        let condition = condition(field)
        guard let name = field.required("flags", .identifier), let flags = flags(field) else {
            return field.abandon()
        }
        if metrics.contains(where: { $0.name == name }) {
            field.report("'\(name)' is a metric already; give the flags another name", at: "flags")
        }
        let conversion = Conversion(name: name, expected: ExpectedReader.numbers(field, flags.range))
        var step = DecodeProgram.Step(flags.action, conversion: program.add(conversion))
        step.condition = condition
        let register = names.add(name, bits: flags.bits, signedBits: flags.signedBits)
        step.register = register
        if field.value("share", .boolean) == true {
            shares.append((name, flags.bits, flags.signedBits, register))
        }
        add(step, field)
    }

    /// Compiles `flags`: an integer of the payload or an expression, for later fields.
    private mutating func flags(
        _ field: MappingReader
    ) -> (action: DecodeProgram.Step.Action, bits: Int64, signedBits: Int?, range: ClosedRange<Int64>)? {
        if field.has("from") {
            field.forbid(["type"], "cannot be combined with 'from', which takes no bytes")
            guard let source = source(field), case .compute = source.action else { return nil }
            return (source.action, 56, source.signedBits, .min ... .max)
        }
        guard let type = field.required("type", .type) else { return nil }
        guard let width = type.width, width <= 7, let range = type.integerRange else {
            field.report("'flags' must be integers of at most 56 bits, such as u8 or u16le", at: "type")
            return nil
        }
        consume(field, takesRest: false)
        return (.read(type), bits(of: type, field), type.signedBits, range)
    }

    private mutating func addSkip(_ field: MappingReader) {
        let condition = condition(field)
        guard let count = expression(field, "skip", Self.octetCount) else { return }
        consume(field, takesRest: false)
        var step = DecodeProgram.Step(.skip(count), conversion: program.add(Conversion(name: "skip")))
        step.condition = condition
        add(step, field)
    }

    private mutating func addIgnore(_ field: MappingReader) {
        guard hasSender else { return field.report("'ignore' is for advertisements", at: "ignore") }
        guard let node = field.node("ignore"), let text = node.text, let condition = compile(text, node) else {
            return field.report("'ignore' is a condition, such as \"!f.6\"", at: "ignore")
        }
        add(DecodeProgram.Step(.ignore(condition), conversion: program.add(Conversion(name: "ignore"))), field)
    }

    /// Compiles fields whose metrics are numbered if a payload has them several times.
    mutating func numberedGroup(_ field: MappingReader, _ compile: (inout FieldCompiler) -> Void) {
        if isInGroup { field.report("groups cannot be nested", at: "objects") }
        let (outside, first) = (restTaken, program.steps.count)
        (isInGroup, isNumbered) = (true, true)
        compile(&self)
        number(program.steps[first...], field)
        (isInGroup, isNumbered, restTaken) = (false, false, outside)
    }

    /// Starts the fields of another kind of object, which may consume the rest of the payload again.
    mutating func startKind() { restTaken = nil }

    private mutating func addDecryption(_ field: MappingReader) {
        let condition = condition(field)
        guard let decryption = DecryptionReader(field)?.decryption() else { return }
        guard hasSender || !decryption.needsSender else {
            let advice = "on connections the key and all other parts are fixed bytes, or bytes of the payload"
            return field.report("the device's key and address are for advertisements: \(advice)", at: "decrypt")
        }
        guard !isInGroup, program.decryption == nil else {
            return field.report("a payload is decrypted once, outside of groups", at: "decrypt")
        }
        consume(field, takesRest: false)
        var step = DecodeProgram.Step(.decrypt, conversion: program.add(Conversion(name: "decrypt")))
        step.condition = condition
        program.add(decryption, step)
        notes.append(FieldNote(field))
    }

    private mutating func addGroup(_ field: MappingReader) {
        let condition = condition(field)
        let count = count(field)
        if isInGroup { field.report("groups cannot be nested", at: "fields") }
        if !field.has("repeat") {
            if !field.has("when") { field.report("a group needs 'when' or 'repeat', or both") }
            field.forbid(["numbered", "size"], "is for groups with 'repeat'")
        }
        let index = program.steps.count
        var step = DecodeProgram.Step(.group(end: index, size: nil), conversion: program.add(Conversion(name: "group")))
        step.condition = condition
        step.count = count ?? .once
        add(step, field)
        let outside = restTaken
        isNumbered = field.value("numbered", .boolean) ?? false
        (isInGroup, makesLists, isInConditional) = (true, count != nil && !isNumbered, condition != nil)
        addFields(of: field)
        if isNumbered { number(program.steps[index...], field) }
        (isInGroup, makesLists, isNumbered, isInConditional) = (false, false, false, false)
        restTaken = outside
        program.close(group: index, size: size(field))
        let takesRest = if case .rest = step.count { condition == nil } else { false }
        if count != nil { consume(field, takesRest: takesRest) }
    }

    /// Adds the metrics of the second and further values of the group's steps.
    private mutating func number(_ group: ArraySlice<DecodeProgram.Step>, _ field: MappingReader) {
        let key = field.has("objects") ? "objects" : "numbered"
        guard program.numbering == nil else {
            return field.report("only one group can be numbered or have objects", at: key)
        }
        let numbering = Numbering(group, of: program.steps, metrics)
        program.numbering = numbering
        let further = numbering.further(metrics)
        for name in further.map(\.name) where names.has(name) || metrics.contains(where: { $0.name == name }) {
            field.report("a further value is named '\(name)', as is another field; rename that one", at: key)
        }
        metrics += further
    }

    /// Returns the register with the length of the group in bytes.
    private func size(_ field: MappingReader) -> Int? {
        guard let name = field.value("size", .identifier) else { return nil }
        guard names.has(name), let size = names[name] else {
            field.report(names.unknown(name), at: "size")
            return nil
        }
        return size.register
    }

    private mutating func addMetric(_ field: MappingReader) {
        let errors = findings.count
        let condition = condition(field)
        let name = field.required("metric", .identifier)
        let source = source(field)
        let format = ValueFormat(field, source: source)
        let count = source?.takesOctets == true ? count(field) : nil
        let length = source?.isText == true ? expression(field, "length", Self.octetCount) : nil
        guard let name, let source, let format else { return field.abandon() }
        if count != nil, isNumbered {
            let remedy = "put the field outside of 'objects' and numbered groups, with 'when'"
            field.report("a list cannot be numbered; \(remedy)", at: "repeat")
        }
        let isRepeated = count != nil || makesLists
        let metric = format.metric(named: name, isRepeated: isRepeated)
        checkReset(metric, hasErrors: findings.count > errors, format, field)
        guard let index = index(of: metric, field) else { return }
        checkAlternatives(index, field)

        var step = DecodeProgram.Step(source.action, conversion: program.add(format.conversion(named: name)))
        step.condition = condition
        step.length = length
        step.metric = index
        step.reason = reason(for: index, format, source, field)
        step.alwaysHasReason = format.hasReasons || count != nil
        hasEmittedReasons = hasEmittedReasons || format.hasReasons || isRepeated || source.canBeSpecial
        if let count { step.count = count }
        if case .read(let type) = source.action {
            takeOctets(of: type, step, field)
            if type.isInteger, let width = type.width, width <= 7 {
                let bits = bits(of: type, field)
                step.register =
                    count == nil
                    ? names.add(name, bits: bits, signedBits: type.signedBits) : names.addList(name)
            }
        }
        add(step, field)
    }

    /// Reports `reset` of a list, or of labels without one for 0, which may be one of the errors.
    private func checkReset(
        _ metric: MetricDescriptor,
        hasErrors: Bool,
        _ format: ValueFormat,
        _ field: MappingReader
    ) {
        if metric.reset != nil, metric.isRepeated {
            field.report("a list cannot be reset", at: "reset")
        } else if format.lacksRestLabel, !hasErrors {
            field.report("'reset' needs a label for 0, the value after this time", at: "reset")
        }
    }

    // MARK: - Metrics

    /// Returns the index of a metric, which must be new or identical to an earlier one.
    private mutating func index(of metric: MetricDescriptor, _ field: MappingReader) -> Int? {
        if ProfileRules.reservedMetrics.contains(metric.name) {
            field.report("'\(metric.name)' is a reserved key; give the metric another name", at: "metric")
            return nil
        }
        if let index = metrics.firstIndex(where: { $0.name == metric.name }) {
            return unite(metric, with: index, field) ? index : nil
        }
        guard !names.has(metric.name) else {
            field.report("there are flags named '\(metric.name)' already; rename one of them", at: "metric")
            return nil
        }
        guard metrics.count < Self.maximumMetrics else {
            field.report("a characteristic has at most \(Self.maximumMetrics) metrics", at: "metric")
            return nil
        }
        metrics.append(metric)
        return metrics.count - 1
    }

    /// Adds the values of another field of a metric; returns false after a reported error.
    private mutating func unite(_ metric: MetricDescriptor, with index: Int, _ field: MappingReader) -> Bool {
        if program.numbering?.isFurther(index) == true {
            let remedy = "give the metric another name"
            field.report("'\(metric.name)' is a further value of the numbered group above; \(remedy)", at: "metric")
            return false
        }
        guard metrics[index].common == metric.common else {
            let what = "another unit, kind, repetition or reset"
            field.report("metric '\(metric.name)' is defined above with \(what)", at: "metric")
            return false
        }
        metrics[index].domain = metrics[index].domain.union(metric.domain)
        return true
    }

    /// Reports a metric of which a payload would have two values, as one of its fields applies always.
    private mutating func checkAlternatives(_ index: Int, _ field: MappingReader) {
        let earlier = isConditional[index]
        let hasCondition = field.has("when") || isInConditional
        isConditional[index] = hasCondition && earlier ?? true
        let mayRepeat = metrics[index].isRepeated || isNumbered || program.numbering?.contains(index) == true
        guard let earlier, !mayRepeat, !earlier || !hasCondition else { return }
        let name = metrics[index].name
        field.report("metric '\(name)' is defined above; give both a 'when', of which only one is true", at: "metric")
    }

    /// Adds the reason metric if the author gives reasons or values can be special.
    ///
    /// After a numbered group, its metrics have only the reasons that are numbered.
    private mutating func reason(
        for metric: Int,
        _ format: ValueFormat,
        _ source: FieldSource,
        _ field: MappingReader
    ) -> Int? {
        let reason = ValueFormat.reason(for: metrics[metric])
        let known = metrics.firstIndex { $0.name == reason.name }
        if let numbering = program.numbering, numbering.contains(metric) {
            if let known, numbering.contains(known) { return known }
            if format.hasReasons {
                field.report("the numbered group above has no reasons for this metric; give it the same", at: "unknown")
            }
            return nil
        }
        if format.hasReasons { return index(of: reason, field) }
        guard format.hasRange && !source.isIncrease || source.canBeSpecial, !isNumbered else { return nil }
        if let known { return metrics[known] == reason ? known : nil }
        guard !names.has(reason.name), metrics.count < Self.maximumMetrics else { return nil }
        metrics.append(reason)
        return metrics.count - 1
    }

    /// Removes a reason metric that is never emitted: an impossible value that is the only one rejects the payload.
    mutating func removeUnusedReason() {
        guard !hasEmittedReasons, metrics.count == 2, metrics[1] == ValueFormat.reason(for: metrics[0]),
            !program.steps.contains(where: { $0.metric == 1 })
        else { return }
        metrics.removeLast()
        program.removeReasons()
    }

    /// Returns the width of an integer in bits; less than its type if it wraps earlier.
    private func bits(of type: FieldType, _ field: MappingReader) -> Int64 {
        let bits = Int64(8 * (type.width ?? 0))
        return field.value("wraps", .integer(1...bits)) ?? bits
    }

    // MARK: - Bytes

    private mutating func takeOctets(of type: FieldType, _ step: DecodeProgram.Step, _ field: MappingReader) {
        let isOpen = type.width == nil && step.length == nil && type != .terminatedText
        var takesRest = isOpen
        if case .rest = step.count { takesRest = true }
        if case .once = step.count {
        } else if isOpen {
            field.report("a repeated text needs a 'length'", at: "repeat")
        }
        consume(field, takesRest: takesRest && step.condition == nil)
    }

    /// Checks that a field that consumes bytes does not follow one that consumes the rest.
    mutating func consume(_ field: MappingReader, takesRest: Bool) {
        if let restTaken {
            field.report("no bytes are left for this field: the one in line \(restTaken.line) consumes the rest")
        }
        if takesRest { restTaken = field.node.position }
    }
}

extension MetricDescriptor {
    /// The description that all fields of a metric share: not the possible values, nor the number to fall back to.
    fileprivate var common: MetricDescriptor {
        var common = self
        common.domain = .open
        if let reset, reset.value.number != nil { common.reset = MetricReset(after: reset.after, value: .integer(0)) }
        return common
    }
}

extension YAMLNode {
    /// Returns the position of a character in a scalar; the start of a multi-line text.
    func position(ofOffset offset: Int) -> YAMLPosition {
        guard case .scalar(_, let isPlain) = content, position.line == end.line else { return position }
        return YAMLPosition(line: position.line, column: position.column + offset + (isPlain ? 0 : 1))
    }
}
