import GattherdYAML

/// Reads the members of one mapping.
///
/// ``finish()`` reports the keys that were not read.
final class MappingReader {
    let node: YAMLNode
    let findings: ProfileFindings
    private let schema: MappingSchema
    private var asked: Set<String> = []
    private var isAbandoned = false

    /// Creates a reader; `nil` for a node that is not a mapping, which is reported.
    init?(_ node: YAMLNode, _ schema: MappingSchema, findings: ProfileFindings) {
        guard node.members != nil else {
            findings.report("\(schema.title) must be a mapping of keys to values, not \(node.kind)", at: node.position)
            return nil
        }
        self.node = node
        self.schema = schema
        self.findings = findings
    }

    /// Returns the value of `key`; `nil` if it is absent or empty.
    func node(_ key: String) -> YAMLNode? {
        asked.insert(key)
        guard let value = node[key], !value.isNull else { return nil }
        return value
    }

    /// The name in errors.
    var title: String { schema.title }

    func has(_ key: String) -> Bool { node(key) != nil }

    /// Returns the position of `key`, or of the mapping if the key is absent.
    func position(of key: String) -> YAMLPosition {
        node.members?.first { $0.name == key }?.key.position ?? node.position
    }

    /// Returns the value of `key`, parsed with `grammar`; reports invalid values.
    func value<Value>(_ key: String, _ grammar: ProfileGrammar<Value>) -> Value? {
        node(key).flatMap { grammar.read($0, findings) }
    }

    /// Returns the value of `key` like ``value(_:_:)``; reports a missing key too.
    func required<Value>(_ key: String, _ grammar: ProfileGrammar<Value>) -> Value? {
        guard let node = node(key) else {
            report("\(schema.title) needs '\(key)': \(grammar.expectation)")
            return nil
        }
        return grammar.read(node, findings)
    }

    /// True if `key` is `true`; false for a mapping.
    func isTrue(_ key: String) -> Bool {
        guard let node = node(key), node.members == nil else { return false }
        return ProfileGrammar.boolean.read(node, findings) ?? false
    }

    /// Returns the elements of the list `key`; reports a single value.
    func elements(_ key: String) -> [YAMLNode] {
        guard let node = node(key) else { return [] }
        guard let elements = node.elements else {
            findings.report("'\(key)' must be a list, not \(node.kind)", at: node.position)
            return []
        }
        return elements
    }

    func report(_ reason: String, at key: String? = nil) {
        findings.report(reason, at: key.map(position) ?? node.position)
    }

    /// Reports each of `keys` that is present.
    func forbid(_ keys: [String], _ reason: String) {
        for key in keys where has(key) { report("'\(key)' \(reason)", at: key) }
    }

    /// Records that an error ended the reading, so that other keys of the schema may be right.
    func abandon() { isAbandoned = true }

    /// Reports each key that was not read.
    ///
    /// Of an abandoned mapping, only keys outside of the schema are reported.
    func finish() {
        for member in node.members ?? [] where !asked.contains(member.name) {
            if isAbandoned, schema.keys.contains(member.name) { continue }
            findings.report(objection(to: member.name), at: member.key.position)
        }
    }

    private func objection(to key: String) -> String {
        if schema.keys.contains(key) { return "'\(key)' has no meaning here, although \(schema.title) may have it" }
        if let nearest = Spelling.nearest(to: key, among: schema.keys) {
            return "\(schema.title) has no key '\(key)'; did you mean '\(nearest)'?"
        }
        return "\(schema.title) has no key '\(key)'; it may have \(schema.keys.joined(separator: ", "))"
    }
}
