import GattherdConfig
import GattherdModel
import GattherdYAML

/// The keys of one section in a file of its own, which is written anew for each change.
struct SectionFile: Equatable {
    /// A part of a file that would be lost, or a mistake in it.
    struct Obstacle: Error, Hashable {
        let line: Int
        let reason: String
    }

    private struct Key: Equatable {
        /// The names from the section on.
        let path: [String]
        /// The value as YAML.
        let scalar: String
    }

    /// The first line.
    private static let header = "# Set by gattherd config set."

    /// The keys in the order of the text; those of one mapping follow one another.
    private var keys: [Key] = []

    /// Reads a file, which may be empty.
    ///
    /// - Throws: ``Obstacle`` if the file has more than scalars of the section, for example comments.
    init(_ bytes: [UInt8], of section: String) throws(Obstacle) {
        let root: YAMLNode?
        do throws(YAMLError) {
            root = try YAML.parse(bytes)
        } catch {
            throw Obstacle(line: error.position.line, reason: error.problem)
        }
        var scalars: [YAMLNode] = []
        if let root, !root.isNull { try add(root, of: section, &scalars) }
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        // The number of # in the values of each line; any other # starts a comment.
        var marks: [Int: Int] = [:]
        for scalar in scalars { marks[scalar.position.line, default: 0] += Self.marks(scalar, lines) }
        for (index, line) in lines.enumerated() where index > 0 || !line.elementsEqual(Self.header.utf8) {
            guard line.count(where: { $0 == UInt8(ascii: "#") }) == marks[index + 1, default: 0] else {
                throw Obstacle(line: index + 1, reason: "a comment would be lost")
            }
        }
    }

    /// Returns the number of # in a value of one line, as it is written: escapes and aliases have none.
    private static func marks(_ value: YAMLNode, _ lines: [ArraySlice<UInt8>]) -> Int {
        let (start, end) = (value.position, value.end)
        guard start.line == end.line, lines.indices.contains(start.line - 1) else { return 0 }
        let line = String(decoding: lines[start.line - 1], as: UTF8.self).unicodeScalars
        return line.dropFirst(max(0, start.column - 1)).prefix(max(0, end.column - start.column)).count { $0 == "#" }
    }

    private mutating func add(_ root: YAMLNode, of section: String, _ scalars: inout [YAMLNode]) throws(Obstacle) {
        guard let members = root.members else {
            throw Obstacle(line: root.position.line, reason: "this is \(root.kind), not a section")
        }
        if let other = members.first(where: { $0.name != section }) {
            throw Obstacle(line: other.key.position.line, reason: "the file has another key, '\(other.name)'")
        }
        for member in members { try add(member.value, [section], &scalars) }
    }

    private mutating func add(_ node: YAMLNode, _ path: [String], _ scalars: inout [YAMLNode]) throws(Obstacle) {
        let line = node.position.line
        switch node.content {
        case .scalar(let text, let isPlain):
            guard text.isOneLine else { throw Obstacle(line: line, reason: "this text has several lines") }
            scalars.append(node)
            // Variables in the text stay.
            let scalar = isPlain ? text : ConfigText.quotedWithVariables(text)
            keys.append(Key(path: path, scalar: scalar.isEmpty ? "null" : scalar))
        case .mapping(let members):
            if members.isEmpty { keys.append(Key(path: path, scalar: "{}")) }
            for member in members {
                guard Slug.isValid(member.name) else {
                    throw Obstacle(line: member.key.position.line, reason: "'\(member.name)' is not a key")
                }
                try add(member.value, path + [member.name], &scalars)
            }
        case .sequence: throw Obstacle(line: line, reason: "this is a list")
        }
    }

    /// Sets or removes a key.
    ///
    /// - Returns: False if the key that is to be removed is missing.
    mutating func apply(_ setting: KeySetting) -> Bool {
        guard let value = setting.value else { return remove(setting.path) }
        set(setting.path, to: value)
        return true
    }

    /// Removes a key, or all keys of a mapping; a mapping is gone with its last key.
    private mutating func remove(_ path: [String]) -> Bool {
        let count = keys.count
        keys.removeAll { $0.path.starts(with: path) }
        return keys.count < count
    }

    /// Sets a key in place of its old value, else behind the keys of the same mapping.
    private mutating func set(_ path: [String], to value: String) {
        let old = keys.firstIndex { $0.path.starts(with: path) || path.starts(with: $0.path) }
        keys.removeAll { $0.path.starts(with: path) || path.starts(with: $0.path) }
        let shared = keys.map { Self.shared($0.path, path) }
        let end = shared.lastIndex(of: shared.max() ?? 0).map { $0 + 1 } ?? 0
        keys.insert(Key(path: path, scalar: ConfigText.scalar(value)), at: old ?? end)
    }

    /// The names of all keys, for example `mqtt.url`.
    var names: [String] { keys.map { $0.path.joined(separator: ".") } }

    /// The text of the file.
    var text: String {
        var lines = [Self.header]
        var parents: [String] = []
        for key in keys {
            let names = key.path.map { ConfigText.scalar($0) }
            let known = Self.shared(parents, names)
            for (depth, name) in names.enumerated().dropFirst(known) {
                let value = depth == names.count - 1 ? " " + key.scalar : ""
                lines.append(String(repeating: "  ", count: depth) + name + ":" + value)
            }
            parents = names.dropLast()
        }
        return lines.map { $0 + "\n" }.joined()
    }

    /// Returns the number of equal names at the start of two paths.
    private static func shared(_ first: [String], _ second: [String]) -> Int {
        zip(first, second).prefix { $0 == $1 }.count
    }
}
