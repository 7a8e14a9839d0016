import GattherdModel
import GattherdYAML

/// Compiles `message`.
struct MessageCompiler {
    private static let types = FieldType.words.filter { word in
        if case .integer(1...4, false, _) = word.value { true } else { false }
    }
    private let reader: MappingReader

    /// Creates a compiler of the mapping `message`; `nil` if it is absent or no mapping.
    init?(_ characteristic: MappingReader) {
        guard let node = characteristic.node("message") else { return nil }
        guard let reader = MappingReader(node, .message, findings: characteristic.findings) else { return nil }
        self.reader = reader
    }

    /// Compiles the rule; returns `nil` after a reported error.
    func rule() -> MessageRule? {
        defer { reader.finish() }
        let beginnings = patterns("begins")
        let ignored = patterns("ignore")
        let timeout = reader.value("within", .duration(ProfileRules.answerTimes))
        let kinds = ["length", "end", "segments"].filter { reader.has($0) }
        guard kinds.count == 1 else {
            reader.report("a message has one of 'length', 'end' and 'segments'")
            return nil
        }
        let read = ["length": length, "end": end, "segments": segments]
        guard let extent = read[kinds[0]]?() else { return nil }
        var rule = MessageRule(beginnings: beginnings, extent: extent, ignored: ignored)
        if let timeout { rule.timeout = timeout }
        return rule
    }

    /// Reads a pattern or a list of patterns.
    private func patterns(_ key: String) -> [BytePattern] {
        guard let node = reader.node(key) else { return [] }
        return (node.elements ?? [node]).compactMap { ProfileGrammar.messageStart.read($0, reader.findings) }
    }

    /// Reads a number of bytes, or the field with it.
    private func length() -> MessageRule.Extent? {
        guard let node = reader.node("length") else { return nil }
        guard node.members != nil else {
            return ProfileGrammar.integer(1...Int64(MessageRule.longest)).read(node, reader.findings)
                .map { .fixed(Int($0)) }
        }
        guard let field = MappingReader(node, .messageLength, findings: reader.findings) else { return nil }
        defer { field.finish() }
        let offset = field.required("at", .integer(0...255))
        let type = field.required("type", .choice(Self.types))
        let add = field.value("add", .integer(-255...255)) ?? 0
        guard let offset, case .integer(let width, _, let isBigEndian) = type else { return nil }
        return .field(at: Int(offset), width: width, isBigEndian: isBigEndian, add: Int(add))
    }

    private func segments() -> MessageRule.Extent? {
        reader.forbid(["begins", "ignore"], "has no meaning for segments")
        return reader.value("segments", .choice([(word: "sig", value: MessageRule.Extent.segments)]))
    }

    private func end() -> MessageRule.Extent? {
        guard let octets = reader.value("end", .octets) else { return nil }
        guard (1...16).contains(octets.count) else {
            reader.report("a message ends with 1 to 16 bytes", at: "end")
            return nil
        }
        return .end(octets)
    }
}
