/// All keys of the configuration with their descriptions, from which pages and the schema are made.
package struct ConfigReference: Sendable {
    /// A key with its place.
    package struct Entry: Hashable, Sendable {
        /// The names from the top level on, joined by dots.
        package let path: String
        package let key: ConfigKey
        /// The description; `nil` if there is none.
        package let description: ConfigDescription?
        /// The keys of its section; `nil` for a value.
        package let entries: [Entry]?

        /// The form of a section.
        var nesting: ConfigKey.Nesting? {
            for case .section(_, let nesting) in key.forms { return nesting }
            return nil
        }
    }

    /// The keys of the top level.
    package let entries: [Entry]

    /// - Parameter outputs: The sections of outputs.
    package init(outputs: [any OutputSectionDefinition.Type]) {
        var own: [String: ConfigDescription] = [:]
        for output in outputs {
            for (key, description) in output.descriptions {
                own[key.isEmpty ? output.section : "\(output.section).\(key)"] = description
            }
        }
        entries = Self.entries(Configuration.keys(outputs: outputs), in: "", own)
    }

    /// All keys, each section before its keys.
    package var all: [Entry] { Self.flat(entries) }

    private static func flat(_ entries: [Entry]) -> [Entry] {
        entries.flatMap { [$0] + flat($0.entries ?? []) }
    }

    private static func entries(
        _ section: ConfigSectionKeys,
        in parent: String,
        _ own: [String: ConfigDescription]
    ) -> [Entry] {
        section.keys.map { key in
            let path = parent.isEmpty ? key.name : "\(parent).\(key.name)"
            var nested: [Entry]?
            for case .section(let keys, _) in key.forms { nested = entries(keys, in: path, own) }
            let description = ConfigDescriptions.description(of: path, own)
            return Entry(path: path, key: key, description: description, entries: nested)
        }
    }
}

extension ConfigReference.Entry {
    /// The name of the key.
    package var name: String { key.name }

    /// The section with the description of the keys of this one; `nil` if this section has it.
    var referred: String? { ConfigDescriptions.repeated[path] }

    /// The kinds of its value in words; empty for a mapping alone.
    var kinds: String {
        let words = key.forms.compactMap { form -> String? in
            switch form {
            case .value(let type): type.words
            case .list(let type): "a list; each element is \(type.words)"
            case .section: entries == nil || key.forms.count == 1 ? nil : "a mapping"
            }
        }
        return words.joined(separator: ", or ")
    }

    /// The default in words; `nil` for a required key or a section.
    var defaultWords: String? {
        guard let description else { return nil }
        return description.standard.map { "`\($0)`" } ?? description.otherwise
    }
}

extension ConfigType {
    var words: String {
        switch shape {
        case .choice(let words) where words.count == 1: "`\(words[0])`"
        case .choice(let words):
            words.dropLast().map { "`\($0)`" }.joined(separator: ", ") + " or `\(words.last ?? "")`"
        case .boolean: "`true` or `false`"
        case .durationOr(let words): noun + " (a duration, " + words.map { "`\($0)`" }.joined(separator: ", ") + ")"
        case .text, .pattern, .integer, .number, .duration, .size: noun
        }
    }
}
