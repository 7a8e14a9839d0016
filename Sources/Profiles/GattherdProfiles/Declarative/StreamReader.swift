import GattherdYAML

/// Reads what characteristics and advertisements have in common: a stream made of fields.
struct StreamReader {
    private let reader: MappingReader

    init(_ reader: MappingReader) {
        self.reader = reader
    }

    /// The stream's name; `nil` when there is none, which is reported.
    func name() -> String? {
        guard let stream = reader.required("stream", .identifier) else { return nil }
        if ProfileRules.reservedStreams.contains(stream) {
            reader.report("'\(stream)' is a topic that every device has; give the stream another name", at: "stream")
        }
        return stream
    }

    func fields(_ shared: SharedValues) -> FieldCompiler {
        var compiler = FieldCompiler(reader.findings, shared)
        let nodes = reader.elements("fields")
        if nodes.count > FieldCompiler.mostFields {
            reader.report("\(reader.title) has at most \(FieldCompiler.mostFields) fields", at: "fields")
        }
        for node in nodes.prefix(FieldCompiler.mostFields) { compiler.add(node) }
        compiler.dropIdleReason()
        if compiler.metrics.isEmpty && reader.findings.isEmpty {
            reader.report("\(reader.title) needs 'fields' with at least one metric", at: "fields")
        }
        return compiler
    }

    /// A number of octets, the least and the most of them, or `exact`.
    func length() -> DecodeProgram.Length {
        guard let node = reader.node("length") else { return .any }
        guard node.text != "exact" else { return .exact }
        let grammar = ProfileGrammar<Int64>.integer(0...512)
        guard let elements = node.elements else {
            let words = ProfileGrammar("exact, a number of octets, or [least, most]") { grammar.parse($0) }
            return words.read(node, reader.findings).map { .octets(Int($0)...Int($0)) } ?? .any
        }
        let ends = elements.compactMap { grammar.read($0, reader.findings) }
        guard ends.count == 2, elements.count == 2, ends[0] <= ends[1] else {
            if ends.count == elements.count {
                reader.findings.report("expected the least and the most octets, such as [2, 20]", at: node.position)
            }
            return .any
        }
        return .octets(Int(ends[0])...Int(ends[1]))
    }
}
