import GattherdModel

/// A key of the configuration and its new value, for example `mqtt.url=mqtt://localhost:1883`, or its removal.
struct KeySetting: Hashable {
    struct Mistake: Error, Hashable {
        let reason: String
    }

    /// The names from the top level to the key; at least one.
    let path: [String]
    /// The new value; `nil` to remove the key.
    let value: String?

    /// The first name, that of a section or of a value of the top level.
    var section: String { path.first ?? "" }

    /// Reads `KEY=VALUE`.
    init(_ word: String) throws(Mistake) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { String($0) }
        guard let key = parts.first, parts.count == 2, let value = parts.last else {
            throw Mistake(reason: "'\(word)' has no '='; write KEY=VALUE")
        }
        path = try Self.path(key)
        self.value = value
        guard value.isOneLine else {
            throw Mistake(reason: "the value of \(key) has control characters or several lines")
        }
    }

    /// Reads `KEY`, the name of a key or of a mapping that is to be removed.
    init(removing key: String) throws(Mistake) {
        path = try Self.path(key)
        value = nil
    }

    private static func path(_ key: String) throws(Mistake) -> [String] {
        let path = key.split(separator: ".", omittingEmptySubsequences: false).map { String($0) }
        guard path.allSatisfy({ Slug.isValid($0) }) else {
            throw Mistake(reason: "'\(key)' is not a key; write names with dots between them, for example mqtt.url")
        }
        return path
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
