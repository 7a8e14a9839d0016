import GattherdModel

/// A key of the configuration and its new value, for example `mqtt.url=mqtt://localhost:1883`.
struct KeySetting: Hashable {
    struct Mistake: Error, Hashable {
        let reason: String
    }

    /// The names from the top level to the key; at least one.
    let path: [String]
    let value: String

    /// The first name, that of a section or of a value of the top level.
    var section: String { path.first ?? "" }

    /// Reads `KEY=VALUE`.
    init(_ word: String) throws(Mistake) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { String($0) }
        guard let key = parts.first, parts.count == 2, let value = parts.last else {
            throw Mistake(reason: "'\(word)' has no '='; write KEY=VALUE")
        }
        path = key.split(separator: ".", omittingEmptySubsequences: false).map { String($0) }
        self.value = value
        guard path.allSatisfy({ Slug.isValid($0) }) else {
            throw Mistake(reason: "'\(key)' is not a key; write names with dots between them, for example mqtt.url")
        }
        guard value.isOneLine else {
            throw Mistake(reason: "the value of \(key) has control characters or several lines")
        }
    }
}

extension String {
    /// True without control characters and characters at which YAML breaks lines.
    var isOneLine: Bool {
        !unicodeScalars.contains { scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: true
            default: false
            }
        }
    }
}
