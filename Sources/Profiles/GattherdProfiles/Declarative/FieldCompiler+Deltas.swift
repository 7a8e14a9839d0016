import GattherdModel
import GattherdYAML

extension FieldCompiler {
    private static let mostChannels = 16

    /// Compiles `deltas`: differences that continue earlier lists.
    mutating func addDeltas(_ field: MappingReader) {
        let condition = condition(field)
        let channels = channels(field)
        let count = count(field)
        if count == nil { field.report("deltas need 'repeat': rest, a number, or an earlier field") }
        guard let bits = bits(field), let channels, let count else { return }
        let takesRest = if case .rest = count { condition == nil } else { false }
        consume(field, takesRest: takesRest)
        let rule = program.add(DeltaRule(channels: channels, bits: bits, count: count))
        var step = DecodeProgram.Step(.deltas(rule), conversion: program.add(Conversion(name: "deltas")))
        step.condition = condition
        add(step, field)
    }

    private mutating func bits(_ field: MappingReader) -> Int? {
        let expectation = "the bits of a difference, such as 12, or an earlier field; at most \(DeltaRule.widest)"
        if !field.has("bits") { field.report("deltas need 'bits': \(expectation)") }
        if let number = field.node("bits")?.text.flatMap({ Integers.parse($0) }), number > DeltaRule.widest {
            field.report("'\(number)' is invalid; expected \(expectation)", at: "bits")
        }
        return expression(field, "bits", expectation)
    }

    /// Returns the steps of the lists that the differences continue; `nil` after a reported error.
    private func channels(_ field: MappingReader) -> [DecodeProgram.Step]? {
        guard let node = field.node("deltas") else { return nil }
        let nodes = node.elements ?? [node]
        guard (1...Self.mostChannels).contains(nodes.count) else {
            field.report("'deltas' names 1 to \(Self.mostChannels) earlier lists", at: "deltas")
            return nil
        }
        let channels = nodes.compactMap { channel($0) }
        return channels.count == nodes.count ? channels : nil
    }

    private func channel(_ node: YAMLNode) -> DecodeProgram.Step? {
        guard let name = ProfileGrammar.identifier.read(node, findings) else { return nil }
        let metric = metrics.firstIndex { $0.name == name && $0.isRepeated }
        let step = program.steps.last { $0.metric == metric && $0.register != nil }
        guard let metric, let step, case .read(let type) = step.action, type.isInteger, step.metric == metric else {
            let example = "{metric: \(name), type: i16le, repeat: 1}"
            findings.report("no earlier list of integers is called '\(name)'; write \(example)", at: node.position)
            return nil
        }
        return step
    }
}
