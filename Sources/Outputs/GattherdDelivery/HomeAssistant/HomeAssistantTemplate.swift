import GattherdModel

/// The Jinja templates, which extract a value from a payload: a reading, or an array of readings.
///
/// In an array, the last reading with the metric is used.
enum HomeAssistantTemplate {
    /// A number.
    ///
    /// A missing value changes nothing, `null` makes the state unknown, and the last element of a list is used.
    static func number(_ metric: MetricDescriptor, isBatched: Bool = false) -> String {
        let value = value(metric, isBatched, default: "''")
        return "\(value.preparation){{ \(value.expression) }}"
    }

    /// A text.
    ///
    /// Home Assistant accepts an empty text as a state, so a missing value is replaced by the current state.
    static func text(_ metric: MetricDescriptor, isBatched: Bool = false) -> String {
        let value = value(metric, isBatched, default: "states(entity_id) if has_value(entity_id) else none")
        return "\(value.preparation){% set v = \(value.expression) %}"
            + "{{ ('on' if v else 'off') if v is boolean else v }}"
    }

    /// A Boolean as `true` or `false`.
    static func boolean(_ metric: MetricDescriptor, isBatched: Bool = false) -> String {
        let value = value(metric, isBatched, default: "''")
        return "\(value.preparation){% set v = \(value.expression) %}"
            + "{{ v if v is none or v == '' else 'true' if v in [true, 'true', 'on'] else 'false' }}"
    }

    /// An event whose type is the value, if it is one of `types`; other values are not events.
    static func event(_ metric: MetricDescriptor, types: [String], isBatched: Bool = false) -> String {
        let value = value(metric, isBatched, default: "''")
        let list = types.map { literal($0) }.joined(separator: ", ")
        return "\(value.preparation){% set v = \(value.expression) %}"
            + "{{ {'event_type': v} | tojson if v in [\(list)] else '' }}"
    }

    /// An event of one type, which occurs when the value is true.
    static func occurrence(_ metric: MetricDescriptor, type: String, isBatched: Bool = false) -> String {
        let value = value(metric, isBatched, default: "''")
        return "\(value.preparation){% set v = \(value.expression) %}"
            + "{{ {'event_type': \(literal(type))} | tojson if v is true else '' }}"
    }

    /// A text as a literal; texts of profiles may have any characters.
    private static func literal(_ text: String) -> String {
        "'" + text.replacingScalars("\\", with: "\\\\").replacingScalars("'", with: "\\'") + "'"
    }

    private static func value(
        _ metric: MetricDescriptor,
        _ isBatched: Bool,
        default other: String
    ) -> (preparation: String, expression: String) {
        let name = metric.name
        let object = isBatched ? "r" : "value_json"
        // `selectattr` takes a name of digits for an index.
        let last =
            "value_json | default([]) | selectattr('\(name)', 'defined') | list | last | default({}, true)"
        let isIndex = name.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let preparation = !isBatched ? "" : "{% set r = \(isIndex ? "value_json | default([{}]) | last" : last) %}"
        let value = "\(object)['\(name)']"
        // A cleared topic has an empty payload, of which Home Assistant makes no JSON.
        let safe = isBatched ? object : "value_json | default({})"
        let expression =
            metric.isRepeated
            ? "(\(value) | last) if (\(safe))['\(name)'] | default([], true) else \(other)"
            : "\(value) if '\(name)' in \(safe) else \(other)"
        return (preparation, expression)
    }
}
