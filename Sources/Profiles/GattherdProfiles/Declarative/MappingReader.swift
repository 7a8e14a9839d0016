import GattherdConfig
import GattherdYAML

/// Reads the members of one mapping.
///
/// Whoever reads asks for each key that means something; ``finish()`` reports the others.
final class MappingReader {
    let node: YAMLNode
    let findings: ProfileFindings
    private let kind: MappingKind
    private var asked: Set<String> = []

    /// Reports a node that is no mapping, and is `nil` then.
    init?(_ node: YAMLNode, _ kind: MappingKind, findings: ProfileFindings) {
        guard node.members != nil else {
            findings.report("\(kind.title) must be a mapping of keys to values, not \(node.kind)", at: node.position)
            return nil
        }
        self.node = node
        self.kind = kind
        self.findings = findings
    }

    /// The value of `key`; `nil` when it is absent or empty.
    func node(_ key: String) -> YAMLNode? {
        asked.insert(key)
        guard let value = node[key], !value.isNull else { return nil }
        return value
    }

    /// What errors call it.
    var title: String { kind.title }

    func has(_ key: String) -> Bool { node(key) != nil }

    /// Where `key` is written, else where the mapping is.
    func position(of key: String) -> YAMLPosition {
        node.members?.first { $0.name == key }?.key.position ?? node.position
    }

    /// The value of `key`, read with `grammar`; what does not fit is reported.
    func value<Value>(_ key: String, _ grammar: ProfileGrammar<Value>) -> Value? {
        node(key).flatMap { grammar.read($0, findings) }
    }

    /// As ``value(_:_:)``; absence is reported too.
    func required<Value>(_ key: String, _ grammar: ProfileGrammar<Value>) -> Value? {
        guard let node = node(key) else {
            report("\(kind.title) needs '\(key)': \(grammar.expectation)")
            return nil
        }
        return grammar.read(node, findings)
    }

    /// Whether `key` is `true`; a mapping is something else, and false.
    func isTrue(_ key: String) -> Bool {
        guard let node = node(key), node.members == nil else { return false }
        return ProfileGrammar.boolean.read(node, findings) ?? false
    }

    /// The elements of the list `key`; a single value is reported.
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

    /// Reports each of `keys` that is there.
    func forbid(_ keys: [String], _ reason: String) {
        for key in keys where has(key) { report("'\(key)' \(reason)", at: key) }
    }

    /// Reports each key that nobody asked for.
    func finish() {
        for member in node.members ?? [] where !asked.contains(member.name) {
            findings.report(objection(to: member.name), at: member.key.position)
        }
    }

    private func objection(to key: String) -> String {
        if kind.keys.contains(key) { return "'\(key)' has no meaning for what this is" }
        if let nearest = Spelling.nearest(to: key, among: kind.keys) {
            return "\(kind.title) has no key '\(key)'; did you mean '\(nearest)'?"
        }
        return "\(kind.title) has no key '\(key)'; it may have \(kind.keys.joined(separator: ", "))"
    }
}
