import GattherdYAML

/// Reads the common part of characteristics and advertisements: a stream and its fields.
struct StreamReader {
    private let reader: MappingReader

    init(_ reader: MappingReader) {
        self.reader = reader
    }

    /// Reads the stream's name; `nil` after a reported error.
    func name() -> String? {
        guard let stream = reader.required("stream", .identifier) else { return nil }
        if ProfileRules.reservedStreams.contains(stream) {
            reader.report("'\(stream)' is a reserved topic; give the stream another name", at: "stream")
        }
        return stream
    }

    /// - Parameters:
    ///   - shared: The values that other characteristics share, and options.
    ///   - hasSender: True for advertisements.
    /// - Returns: The compiled fields; without those that have a reported error.
    func fields(_ shared: SharedValues, hasSender: Bool = false) -> FieldCompiler {
        var compiler = FieldCompiler(reader.findings, shared, hasSender: hasSender)
        compiler.addFields(of: reader)
        compiler.removeUnusedReason()
        compiler.program.checksum = ChecksumReader(reader)?.checksum()
        if compiler.metrics.isEmpty && reader.findings.isEmpty {
            reader.report("\(reader.title) needs 'fields' with at least one metric", at: "fields")
        }
        return compiler
    }

    /// Reads the length: a number of bytes, a range, or `exact`.
    func length() -> DecodeProgram.Length {
        guard let node = reader.node("length") else { return .any }
        guard node.text != "exact" else { return .exact }
        let grammar = ProfileGrammar<Int64>.integer(0...512)
        guard let elements = node.elements else {
            let words = ProfileGrammar("exact, a number of bytes, or [minimum, maximum]") { grammar.parse($0) }
            return words.read(node, reader.findings).map { .octets(Int($0)...Int($0)) } ?? .any
        }
        let ends = elements.compactMap { grammar.read($0, reader.findings) }
        guard ends.count == 2, elements.count == 2, ends[0] <= ends[1] else {
            if ends.count == elements.count {
                reader.findings.report("expected the minimum and maximum length, such as [2, 20]", at: node.position)
            }
            return .any
        }
        return .octets(Int(ends[0])...Int(ends[1]))
    }
}
