import GattherdYAML

/// The text of a configuration file with the newest names of all keys.
package struct ConfigMigration: Sendable {
    /// The keys with old names, in the order of the text.
    package let oldKeys: [OldKey]
    /// The new text, or the unchanged text if no key was renamed.
    package let bytes: [UInt8]

    /// - Throws: ``ConfigErrors`` if the text is not YAML.
    package init(_ source: ConfigSource, _ renames: [ConfigRename] = ConfigRename.all) throws(ConfigErrors) {
        let file = ConfigFile(source)
        var renaming = KeyRenaming(renames)
        do throws(YAMLError) {
            if let root = try YAML.parse(file.bytes) { _ = renaming.apply(to: FileNode(node: root, file: file)) }
        } catch {
            let place = ConfigPlace(file, line: error.position.line, column: error.position.column, width: 1)
            throw ConfigErrors([ConfigError(.syntax(error.problem), at: place)])
        }
        oldKeys = renaming.found.sorted { $0.start < $1.start }
        guard !oldKeys.isEmpty, let text = String(validating: file.bytes, as: UTF8.self) else {
            bytes = source.bytes
            return
        }
        var edit = TextEdit(text)
        for key in oldKeys { edit.replace(edit.offset(key.start)..<edit.offset(key.end), key.rename.new) }
        bytes = source.bytes.prefix(source.bytes.count - file.bytes.count) + Array(edit.result.utf8)
    }
}

/// Replaces parts of a text; the rest stays as it is.
struct TextEdit {
    let scalars: [Unicode.Scalar]
    private let lineStarts: [Int]
    private var replacements: [(range: Range<Int>, text: String)] = []

    init(_ text: String) {
        scalars = Array(text.unicodeScalars)
        lineStarts = [0] + scalars.indices.filter { [scalars] in scalars[$0] == "\n" }.map { $0 + 1 }
    }

    mutating func replace(_ range: Range<Int>, _ text: String) { replacements.append((range, text)) }

    var result: String {
        var scalars = scalars
        // From the end on; an insertion follows a removal at the same place, which it would shift.
        let ordered = replacements.sorted { one, other in
            (one.range.lowerBound, one.range.upperBound) > (other.range.lowerBound, other.range.upperBound)
        }
        for replacement in ordered {
            scalars.replaceSubrange(replacement.range, with: Array(replacement.text.unicodeScalars))
        }
        return String(String.UnicodeScalarView(scalars))
    }

    func scalar(at index: Int) -> Unicode.Scalar? { scalars.indices.contains(index) ? scalars[index] : nil }

    func start(ofLine line: Int) -> Int {
        lineStarts.indices.contains(line - 1) ? lineStarts[line - 1] : scalars.count
    }

    func offset(_ position: YAMLPosition) -> Int {
        min(start(ofLine: position.line) + position.column - 1, scalars.count)
    }
}
