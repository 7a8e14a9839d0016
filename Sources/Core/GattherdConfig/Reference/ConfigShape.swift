/// The values of a key in YAML, as far as a schema can express them.
package enum ConfigShape: Hashable, Sendable {
    /// Any text; YAML may parse it as a number.
    case text
    /// A text that matches a regular expression, in the syntax of JSON Schema.
    case pattern(String)
    case boolean
    case integer(ClosedRange<Int>)
    /// A number; `nil` for no lower bound.
    case number(from: Double?)
    case choice([String])
    case duration
    /// A duration or one of these words.
    case durationOr([String])
    case size
}

/// The kind of a value: its name in words, and its shape.
package struct ConfigType: Hashable, Sendable {
    /// The name with an article, for example `a duration from 1s to 10m`.
    package let noun: String
    package let shape: ConfigShape

    /// One of some words.
    static func choice(_ words: [String]) -> Self {
        ConfigType(noun: "a word", shape: .choice(words))
    }
}

/// A key of the configuration, as its reader reads it.
package struct ConfigKey: Hashable, Sendable {
    /// A form of its value; a key may have several.
    package enum Form: Hashable, Sendable {
        case value(ConfigType)
        /// A list of values.
        case list(ConfigType)
        case section(ConfigSectionKeys, Nesting)
    }

    /// The forms of a section.
    package enum Nesting: Hashable, Sendable {
        case mapping
        /// A list of mappings.
        case list
        /// One mapping, or a list of them.
        case mappingOrList
    }

    /// The name; ``SectionRecorder/anyName`` for names that users choose.
    package let name: String
    package var forms: [Form]
    package var isRequired: Bool
}

/// The keys of a section, in the order of reading.
package struct ConfigSectionKeys: Hashable, Sendable {
    package var keys: [ConfigKey] = []

    package init() {}
}
