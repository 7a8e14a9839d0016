import GattherdConfig
import GattherdYAML

/// Reads the members of one mapping.
///
/// Whoever reads asks for each key that there may be; ``finish()`` reports the others.
final class MappingReader {
    let node: YAMLNode
    let findings: Findings
    /// What errors call the mapping, for example `a field`.
    private let title: String
    private var known: [String] = []

    /// Reports a node that is no mapping, and is `nil` then.
    init?(_ node: YAMLNode, title: String, findings: Findings) {
        guard node.members != nil else {
            findings.report("\(title) must be a mapping of keys to values, not \(node.kind)", at: node.position)
            return nil
        }
        self.node = node
        self.title = title
        self.findings = findings
    }

    /// The value of `key`; `nil` when it is absent or empty.
    func node(_ key: String) -> YAMLNode? {
        if !known.contains(key) { known.append(key) }
        guard let value = node[key], !value.isNull else { return nil }
        return value
    }

    func has(_ key: String) -> Bool { node(key) != nil }

    /// Where `key` is written, else where the mapping is.
    func position(of key: String) -> YAMLPosition {
        node.members?.first { $0.name == key }?.key.position ?? node.position
    }

    /// The value of `key`, read with `grammar`; what does not fit is reported.
    func value<Value>(_ key: String, _ grammar: Grammar<Value>) -> Value? {
        node(key).flatMap { grammar.read($0, findings) }
    }

    /// As ``value(_:_:)``; absence is reported too.
    func required<Value>(_ key: String, _ grammar: Grammar<Value>) -> Value? {
        guard let node = node(key) else {
            report("\(title) needs '\(key)': \(grammar.expectation)")
            return nil
        }
        return grammar.read(node, findings)
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
        for member in node.members ?? [] where !known.contains(member.name) {
            let hint =
                Spelling.nearest(to: member.name, among: known).map { "did you mean '\($0)'?" }
                ?? "it may have \(known.joined(separator: ", "))"
            findings.report("\(title) has no key '\(member.name)'; \(hint)", at: member.key.position)
        }
    }
}
