import GattherdModel
import GattherdYAML

/// Reads bytes to write, in which numbers in braces stand for times, options and the like, and their `check`.
struct TemplateReader {
    /// The numbers of all writes.
    static let times = WriteTime.Unit.allCases.map { WriteTemplate.Variable.time($0) }

    private let reader: MappingReader
    private let options: [ProfileOption]
    /// The checksum of the bytes.
    let check: WrittenChecksum

    init(_ reader: MappingReader, _ options: [ProfileOption]) {
        (self.reader, self.options) = (reader, options)
        check = WrittenChecksum(reader)
    }

    /// Reads the bytes of `key`; `nil` if it is absent or after a reported error.
    func template(_ key: String, _ allowed: [WriteTemplate.Variable], example: String) -> WriteTemplate? {
        reader.node(key).flatMap { template($0, allowed, example: example) }
    }

    /// Reads the bytes of a scalar; `nil` after a reported error.
    func template(_ node: YAMLNode, _ allowed: [WriteTemplate.Variable], example: String) -> WriteTemplate? {
        let names = options.map(\.name)
        let known = allowed + names.map { .option($0) }
        let words = known.map(\.description).joined(separator: ", ")
        let grammar = ProfileGrammar("bytes in hexadecimal and the numbers \(words), such as \"\(example)\"") { text in
            Self.template(text, names, canBeEmpty: allowed == Self.times).flatMap { template in
                template.count <= 512 && template.variables.allSatisfy(known.contains) ? template : nil
            }
        }
        guard var template = grammar.read(node, reader.findings) else { return nil }
        for option in options { checkRange(option, template, node) }
        check.check(count: template.count)
        template.checksum = check.checksum
        return template.completed
    }

    /// Parses bytes with numbers.
    ///
    /// A task or a request may write no bytes; a download has to ask for something.
    private static func template(_ text: String, _ options: [String], canBeEmpty: Bool) -> WriteTemplate? {
        canBeEmpty && text.allSatisfy(\.isWhitespace) ? WriteTemplate([]) : WriteTemplate(text, options: options)
    }

    /// Reports an option with values that do not fit into its bytes.
    private func checkRange(_ option: ProfileOption, _ template: WriteTemplate, _ node: YAMLNode) {
        guard template.contains(.option(option.name)) else { return }
        for end in [option.range.lowerBound, option.range.upperBound]
        where template.resolved({ $0 == option.name ? end : nil }).contains(.option(option.name)) {
            let reason = "the value \(end) of the option '\(option.name)' does not fit into its bytes"
            reader.findings.report(reason, at: node.position)
        }
    }
}
