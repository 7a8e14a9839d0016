/// A position in a text: line and column, both counted from 1, the column in characters.
public struct YAMLPosition: Hashable, Sendable {
    public let line: Int
    public let column: Int

    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }
}

extension YAMLPosition: Comparable {
    public static func < (left: Self, right: Self) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

extension YAMLPosition: CustomStringConvertible {
    public var description: String { "\(line):\(column)" }
}

/// A value of a YAML text and its position.
///
/// Scalars are not interpreted: numbers and durations are texts.
public struct YAMLNode: Hashable, Sendable {
    public enum Content: Hashable, Sendable {
        /// A text; `isPlain` if it has no quotes and is not a block.
        case scalar(String, isPlain: Bool)
        case sequence([YAMLNode])
        /// Members in the order of the text, with unique names.
        case mapping([YAMLMember])
    }

    public let content: Content
    /// The position of the first character; of an alias, not of its anchor.
    public let position: YAMLPosition
    /// The position after the last character.
    public let end: YAMLPosition

    public init(_ content: Content, position: YAMLPosition, end: YAMLPosition) {
        self.content = content
        self.position = position
        self.end = end
    }
}

/// A `key: value` of a mapping.
public struct YAMLMember: Hashable, Sendable {
    /// The key, always a scalar.
    public let key: YAMLNode
    public let value: YAMLNode
    /// The key's text.
    public let name: String

    init(key: YAMLNode, name: String, value: YAMLNode) {
        self.key = key
        self.name = name
        self.value = value
    }

    /// Returns the member with another name and value; the key keeps its text and position.
    public func with(name: String, value: YAMLNode) -> YAMLMember { YAMLMember(key: key, name: name, value: value) }
}

extension YAMLNode {
    /// The text of a scalar; `nil` for lists and mappings.
    public var text: String? {
        guard case .scalar(let text, _) = content else { return nil }
        return text
    }

    /// True for an empty value, `~` and `null`, unless it is quoted.
    public var isNull: Bool {
        guard case .scalar(let text, isPlain: true) = content else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(text)
    }

    public var elements: [YAMLNode]? {
        guard case .sequence(let elements) = content else { return nil }
        return elements
    }

    public var members: [YAMLMember]? {
        guard case .mapping(let members) = content else { return nil }
        return members
    }

    /// The value of the member `name`, if this is a mapping with such a member.
    public subscript(name: String) -> YAMLNode? {
        members?.first { $0.name == name }?.value
    }

    /// The kind of value, as text for users: `a text`, `an empty value`, `a list` or `a mapping`.
    public var kind: String {
        switch content {
        case .scalar: isNull ? "an empty value" : "a text"
        case .sequence: "a list"
        case .mapping: "a mapping"
        }
    }
}
