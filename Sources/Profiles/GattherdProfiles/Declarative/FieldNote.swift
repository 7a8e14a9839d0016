import GattherdYAML

/// A field as its author wrote it, for those who ask how a value came about.
struct FieldNote: Sendable {
    /// Where it stands in the file.
    let line: Int
    /// The metric or the flags; what it does where it has no name.
    let name: String
    /// A type, a sum, or what it is computed from.
    let source: String
    let condition: String?
    /// Such as `× 0.01 + 4`; empty when the number is taken as it is.
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
