import GattherdModel
import GattherdYAML

/// The trace of a program that decodes one payload.
///
/// Tracing is slow. Only explanations set a trace in ``DecodeMemory``.
final class DecodeTrace {
    enum DecodeOutcome {
        /// The step failed and rejected the payload.
        case failed
        /// The step's condition is false.
        case absent
        case done
        /// The start of a round of a group.
        case round(Int)
        /// The bytes of a group beyond its fields.
        case padding
    }

    struct Entry {
        let step: Int
        var octets: Range<Int>
        var outcome: DecodeOutcome
        /// The value of an expression, or the bytes as an integer.
        var number: Int64?
        var samples: [Sample] = []
    }

    private(set) var entries: [Entry] = []
    private var rounds: [Int: Int] = [:]
    /// The decrypted payload; `nil` without encryption.
    private(set) var payload: [UInt8]?

    func skip(_ step: Int, at offset: Int) {
        entries.append(Entry(step: step, octets: offset..<offset, outcome: .absent))
    }

    func begin(_ step: Int, at offset: Int) {
        entries.append(Entry(step: step, octets: offset..<offset, outcome: .failed))
    }

    /// Records the end of the last step.
    func end(at offset: Int, number: Int64?, samples: ArraySlice<Sample>) {
        guard var entry = entries.popLast() else { return }
        entry.octets = entry.octets.lowerBound..<offset
        entry.outcome = .done
        entry.number = number
        entry.samples = Array(samples)
        entries.append(entry)
    }

    func enter(group step: Int, at offset: Int) {
        enter(group: step, offset..<offset)
    }

    /// Records a round that begins with some bytes of its own.
    func enter(group step: Int, _ octets: Range<Int>) {
        rounds[step, default: 0] += 1
        entries.append(Entry(step: step, octets: octets, outcome: .round(rounds[step] ?? 1)))
    }

    /// Records that the following steps decode a decrypted payload.
    func replace(_ opened: [UInt8], step: Int, from offset: Int, of count: Int) {
        payload = opened
        entries.append(Entry(step: step, octets: offset..<offset, outcome: .done, number: Int64(count)))
    }

    func pad(group step: Int, _ octets: Range<Int>) {
        if !octets.isEmpty { entries.append(Entry(step: step, octets: octets, outcome: .padding)) }
    }
}

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
        name = text("metric") ?? text("flags") ?? Self.kind(field.node)
        source = Self.source(field.node)
        condition = text("when")
        let parts = [text("scale").map { "× \($0)" }, text("offset").map { "+ \($0)" }].compactMap(\.self)
        let power = text("base").map { "\($0) to the power of it" }
        arithmetic = (parts + [power].compactMap(\.self)).joined(separator: " ")
    }

    private static func kind(_ node: YAMLNode) -> String {
        let words = [
            ("fields", "group"), ("objects", "object"), ("decrypt", "decrypted"), ("ignore", "ignored"),
            ("deltas", "deltas"),
        ]
        return words.first { node[$0.0] != nil }?.1 ?? "skipped"
    }

    private static func source(_ node: YAMLNode) -> String {
        if let type = node["type"]?.text { return type }
        if let number = node["objects"]?["id"]?.text { return number }
        if let condition = node["ignore"]?.text { return condition }
        if let bits = node["bits"]?.text { return "deltas of \(bits) bits" }
        if let cipher = node["decrypt"]?["cipher"]?.text { return cipher }
        if let formula = node["formula"]?.text { return formula }
        if let sum = node["from"]?.text { return node["as"]?.text.map { "\(sum) as \($0)" } ?? sum }
        if let counter = node["increase"]?.text {
            return "increase of \(counter)" + (node["over"]?.text.map { " over \($0)" } ?? "")
        }
        let aggregate = Aggregate.allCases.first { node[$0.rawValue] != nil }
        return aggregate.flatMap { kind in node[kind.rawValue]?.text.map { "\(kind.rawValue) of \($0)" } } ?? ""
    }
}
