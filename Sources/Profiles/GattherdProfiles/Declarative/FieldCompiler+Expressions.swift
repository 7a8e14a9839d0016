import GattherdModel
import GattherdYAML

extension FieldCompiler {
    static let octetCount = "a number of bytes from 1 to 512, or an earlier field"
    private static let repetition = "rest, a number from 1 to 512, or an earlier field"

    mutating func condition(_ field: MappingReader) -> Int? {
        guard let node = field.node("when") else { return nil }
        guard let text = node.text else {
            findings.report("this is \(node.kind); expected a condition, such as \"f.0 & !f.1\"", at: node.position)
            return nil
        }
        return compile(text, node)
    }

    /// Reads a number from 1 to 512, or an expression over earlier fields.
    mutating func expression(_ field: MappingReader, _ key: String, _ expectation: String) -> Int? {
        guard let node = field.node(key) else { return nil }
        guard let text = node.text else {
            findings.report("this is \(node.kind); expected \(expectation)", at: node.position)
            return nil
        }
        if let number = Integers.parse(text), !(1...512).contains(number) {
            findings.report("'\(text)' is invalid; expected \(expectation)", at: node.position)
            return nil
        }
        return compile(text, node, hint: "; expected \(expectation)")
    }

    /// Reads the repetition of a field; `nil` for a single value.
    mutating func count(_ field: MappingReader) -> DecodeProgram.Step.Count? {
        guard field.node("repeat")?.text != "rest" else { return .rest }
        return expression(field, "repeat", Self.repetition).map { .times($0) }
    }

    mutating func compile(
        _ text: String,
        _ node: YAMLNode,
        isFormula: Bool = false,
        hint: String = ""
    ) -> Int? {
        do throws(ExpressionParser.Failure) {
            return try ExpressionParser.expression(
                text,
                names,
                isFormula: isFormula,
                into: &program.expressions
            )
        } catch {
            findings.report("'\(text.brief)': \(error.reason)\(hint)", at: node.position(ofOffset: error.offset))
            return nil
        }
    }
}
