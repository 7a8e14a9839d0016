import GattherdYAML

/// The source text of a field, for explanations.
struct FieldNote: Sendable {
    /// The line in the file.
    let line: Int
    /// The name of the metric or the flags; the operation if it has no name.
    let name: String
    /// The type or expression that gives the value.
    let source: String
    let condition: String?
    /// The arithmetic, such as `× 0.01 + 4`; empty for none.
    let arithmetic: String

    init(_ field: MappingReader) {
        let text = { (key: String) in field.node[key]?.text }
        line = field.node.position.line
        name = text("metric") ?? text("flags") ?? (field.node["fields"] == nil ? "skipped" : "group")
        source = Self.source(field.node)
        condition = text("when")
        let parts = [text("scale").map { "× \($0)" }, text("offset").map { "+ \($0)" }].compactMap(\.self)
        let power = text("base").map { "\($0) to the power of it" }
        arithmetic = (parts + [power].compactMap(\.self)).joined(separator: " ")
    }

    private static func source(_ node: YAMLNode) -> String {
        if let type = node["type"]?.text { return type }
        if let sum = node["from"]?.text { return node["as"]?.text.map { "\(sum) as \($0)" } ?? sum }
        if let counter = node["increase"]?.text {
            return "increase of \(counter)" + (node["over"]?.text.map { " over \($0)" } ?? "")
        }
        let aggregate = Aggregate.allCases.first { node[$0.rawValue] != nil }
        return aggregate.flatMap { kind in node[kind.rawValue]?.text.map { "\(kind.rawValue) of \($0)" } } ?? ""
    }
}
