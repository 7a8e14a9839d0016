import GattherdModel

/// The names of fields, chosen so that a field's type never depends on its values.
///
/// InfluxDB refuses a point whose field has another type than before. So all numbers are floats, booleans are 1 and 0,
/// and texts have fields of their own.
enum FieldName {
    private static let textSuffix = "_text"
    /// Names of tags, and InfluxDB's own: a field of the same name would be lost or refused.
    private static let reserved: Set<String> = [
        "time", "device", "element", "gateway", "profile", "source", "stream",
    ]

    /// Returns the field of a metric's numbers and booleans: normally the metric's name.
    ///
    /// Different metrics have different fields: reserved names, and those like a text's field, get another `_`.
    static func number(_ metric: String) -> String {
        var stem = metric[...]
        while stem.hasSuffix("_") { stem.removeLast() }
        return reserved.contains(String(stem)) || stem.hasSuffix(textSuffix) ? metric + "_" : metric
    }

    /// Returns the field of a metric's texts.
    static func text(_ metric: String) -> String { metric + textSuffix }
}

/// A value as line protocol has it, without its type.
enum FieldValue {
    /// Returns the field with a value: `name=value`; `nil` for an unknown value, which a point omits.
    static func field(_ metric: String, _ value: SampleValue) -> [UInt8]? {
        switch value {
        // Without a suffix it is a float.
        case .integer(let number): field(FieldName.number(metric), "\(number)")
        case .real(let number): number.isFinite ? field(FieldName.number(metric), "\(number)") : nil
        case .boolean(let flag): field(FieldName.number(metric), flag ? "1" : "0")
        case .text(let text): field(FieldName.text(metric), LineProtocol.quoted(text.onOneLine))
        case .null: nil
        }
    }

    private static func field(_ name: String, _ value: String) -> [UInt8] {
        var bytes: [UInt8] = []
        LineProtocol.escape(name, to: &bytes)
        bytes.append(UInt8(ascii: "="))
        bytes += value.utf8
        return bytes
    }
}

extension String {
    /// The text with spaces for control characters: VictoriaMetrics ends a point at each line break.
    var onOneLine: String {
        guard utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return self }
        return String(decoding: utf8.map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }, as: UTF8.self)
    }
}
