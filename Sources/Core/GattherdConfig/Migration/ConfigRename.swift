import GattherdYAML

/// A key of the configuration that some version renamed.
///
/// Files with the old name stay valid. `gattherd migrate` writes the new one.
package struct ConfigRename: Hashable, Sendable {
    /// The names of the sections around the key, from the top level on; `*` stands for every name.
    ///
    /// Elements of lists have no name.
    let section: [String]
    let old: String
    let new: String
    /// The first version with the new name.
    let version: String

    package init(_ section: [String], _ old: String, to new: String, since version: String) {
        (self.section, self.old, self.new, self.version) = (section, old, new, version)
    }

    /// All renames, the oldest first.
    ///
    /// Never remove a line: a file in `Tests/Configurations` uses the old name.
    package static let all: [Self] = []

    fileprivate func applies(to name: String, in path: [String]) -> Bool {
        name == old && path.count == section.count && zip(section, path).allSatisfy { $0 == "*" || $0 == $1 }
    }
}

/// A key with an old name in a file.
package struct OldKey: Hashable, Sendable {
    package let rename: ConfigRename
    package let place: ConfigPlace
    /// The positions of the name in the text.
    let (start, end): (YAMLPosition, YAMLPosition)

    /// The warning about the key.
    package var finding: ConfigError {
        ConfigError(.renamedKey(rename.old, new: rename.new, version: rename.version), at: place, severity: .warning)
    }
}

/// Replaces the old names in a file's content by the new ones.
struct KeyRenaming {
    let renames: [ConfigRename]
    private(set) var found: [OldKey] = []

    init(_ renames: [ConfigRename]) {
        self.renames = renames
    }

    mutating func apply(to root: FileNode) -> FileNode {
        guard !renames.isEmpty else { return root }
        return FileNode(node: renamed(root.node, [], root.file), file: root.file)
    }

    private mutating func renamed(_ node: YAMLNode, _ path: [String], _ file: ConfigFile) -> YAMLNode {
        switch node.content {
        case .scalar: return node
        case .sequence(let elements):
            let content = YAMLNode.Content.sequence(elements.map { renamed($0, path, file) })
            return YAMLNode(content, position: node.position, end: node.end)
        case .mapping(let members):
            let names = Set(members.map(\.name))
            let content = YAMLNode.Content.mapping(members.map { renamed($0, names, path, file) })
            return YAMLNode(content, position: node.position, end: node.end)
        }
    }

    /// Returns a member with its newest name.
    ///
    /// With both names in one mapping, the old one stays, and is unknown.
    private mutating func renamed(
        _ member: YAMLMember,
        _ names: Set<String>,
        _ path: [String],
        _ file: ConfigFile
    ) -> YAMLMember {
        var name = member.name
        for rename in renames where rename.applies(to: name, in: path) && !names.contains(rename.new) {
            let place = FileNode(node: member.key, file: file).place
            found.removeAll { $0.place == place }
            let newest = ConfigRename(rename.section, member.name, to: rename.new, since: rename.version)
            found.append(OldKey(rename: newest, place: place, start: member.key.position, end: member.key.end))
            name = rename.new
        }
        return member.with(name: name, value: renamed(member.value, path + [name], file))
    }
}
