import GattherdModel

/// The JSON Schema of the configuration, for editors.
///
/// `gattherd check` finds more mistakes: the schema has no dependencies between values and no ranges of durations.
extension ConfigReference {
    /// The schema as JSON text.
    package var schema: String {
        let bytes = JSONWriter.bytes { writer in
            writer.beginObject()
            writer.text("$schema", "http://json-schema.org/draft-07/schema#")
            writer.text("title", "Configuration of gattherd")
            Self.writeSection(entries, to: &writer)
            writer.key("definitions")
            writer.beginObject()
            for (name, pattern) in Self.patterns {
                writer.key(name)
                writer.beginObject()
                writer.text("type", "string")
                writer.text("pattern", pattern)
                writer.endObject()
            }
            writer.endObject()
            writer.endObject()
        }
        return String(decoding: bytes, as: UTF8.self) + "\n"
    }

    private static let patterns = [
        ("variable", #"\$\{"#), ("duration", "^[0-9]+([.][0-9]{1,6})?(us|ms|s|m|h|d|w|y)$"),
        ("size", "^[0-9]+([.][0-9]{1,6})?([kMGT]?B|[KMGT]iB)$"),
    ]

    /// Writes the members of a mapping's schema.
    private static func writeSection(_ entries: [Entry], to writer: inout JSONWriter) {
        writer.list("type", ["object", "null"])
        let fixed = entries.filter { $0.name != SectionRecorder.anyName }
        writer.key("properties")
        writer.beginObject()
        for entry in fixed {
            writer.key(entry.name)
            write(entry, to: &writer)
        }
        writer.endObject()
        let required = fixed.filter(\.key.isRequired).map(\.name)
        if !required.isEmpty { writer.list("required", required) }
        writer.key("additionalProperties")
        if let any = entries.first(where: { $0.name == SectionRecorder.anyName }) {
            write(any, to: &writer)
        } else {
            writer.boolean(false)
        }
    }

    private static func write(_ entry: Entry, to writer: inout JSONWriter) {
        writer.beginObject()
        if let description = entry.description { writer.text("description", words(description)) }
        writer.key("anyOf")
        writer.beginArray()
        for form in entry.key.forms { write(form, entry, to: &writer) }
        writer.object { $0.text("type", "null") }
        writer.object { $0.text("$ref", "#/definitions/variable") }
        writer.endArray()
        writer.endObject()
    }

    private static func words(_ description: ConfigDescription) -> String {
        let example = description.example.map { " Example: \($0)." } ?? ""
        let standard = (description.standard ?? description.otherwise).map { " Default: \($0)." } ?? ""
        return description.text + example + standard
    }

    private static func write(_ form: ConfigKey.Form, _ entry: Entry, to writer: inout JSONWriter) {
        switch form {
        case .value(let type): writer.object { write(type.shape, to: &$0) }
        case .list(let type):
            writer.object { writer in
                writer.text("type", "array")
                writer.key("items")
                writer.object { write(type.shape, to: &$0) }
            }
        case .section(_, let nesting):
            let nested = entry.entries ?? []
            if nesting != .list { writer.object { writeSection(nested, to: &$0) } }
            if nesting != .mapping {
                writer.object { writer in
                    writer.text("type", "array")
                    writer.key("items")
                    writer.object { writeSection(nested, to: &$0) }
                }
            }
        }
    }

    private static func write(_ shape: ConfigShape, to writer: inout JSONWriter) {
        switch shape {
        case .text: writer.list("type", ["string", "number", "boolean"])
        case .pattern(let pattern):
            // YAML may take an address of digits for a number.
            writer.list("type", ["string", "number"])
            writer.text("pattern", pattern)
        case .boolean: writer.text("type", "boolean")
        case .integer(let range):
            writer.text("type", "integer")
            writer.key("minimum")
            writer.integer(range.lowerBound)
            writer.key("maximum")
            writer.integer(range.upperBound)
        case .number(let least):
            writer.text("type", "number")
            if let least {
                writer.key("minimum")
                writer.real(least)
            }
        case .choice(let words): writeChoice(words, to: &writer)
        case .duration: writer.text("$ref", "#/definitions/duration")
        case .durationOr(let words):
            writer.key("anyOf")
            writer.beginArray()
            writer.object { $0.text("$ref", "#/definitions/duration") }
            writer.object { writeChoice(words, to: &$0) }
            writer.endArray()
        case .size: writer.text("$ref", "#/definitions/size")
        }
    }

    /// Writes the choices.
    ///
    /// YAML parses some words as a number or a Boolean, so the schema allows that value as well.
    private static func writeChoice(_ words: [String], to writer: inout JSONWriter) {
        writer.key("enum")
        writer.beginArray()
        for word in words { writer.string(word) }
        for number in words.compactMap(Double.init) { writer.real(number) }
        if words.contains("off") { writer.boolean(false) }
        writer.endArray()
    }
}

extension JSONWriter {
    fileprivate mutating func text(_ key: String, _ text: String) {
        self.key(key)
        string(text)
    }

    fileprivate mutating func list(_ key: String, _ texts: [String]) {
        self.key(key)
        array(texts) { $0.string($1) }
    }

    fileprivate mutating func object(_ members: (inout JSONWriter) -> Void) {
        beginObject()
        members(&self)
        endObject()
    }
}
