import GattherdGATT
import GattherdYAML

/// The members of one mapping.
///
/// Members that were not read are reported as unknown by ``finish()``.
struct MappingFields {
    let position: YAMLPosition
    let problems: ProblemList
    private let members: [YAMLMember]
    private var known: [String] = []

    /// Makes the fields of a node, and reports a problem if it is not a mapping.
    ///
    /// - Parameters:
    ///   - node: The node.
    ///   - what: The mapping's subject, for messages.
    ///   - problems: The list of problems.
    init(_ node: YAMLNode, _ what: String, _ problems: ProblemList) {
        position = node.position
        self.problems = problems
        members = node.members ?? []
        if node.members == nil { problems.add("\(what) must be a mapping, not \(node.kind)", at: node.position) }
    }

    /// The value of `key`; `nil` if it is missing or empty.
    mutating func node(_ key: String) -> YAMLNode? {
        known.append(key)
        guard let node = members.first(where: { $0.name == key })?.value, !node.isNull else { return nil }
        return node
    }

    /// True if `key` exists, valid or not.
    func has(_ key: String) -> Bool { members.contains { $0.name == key } }

    /// The parsed value of `key`.
    ///
    /// A value that `parse` refuses is reported as not `expected`.
    mutating func value<Value>(_ key: String, _ expected: String, _ parse: (String) -> Value?) -> Value? {
        node(key).flatMap { parsed($0, expected, parse) }
    }

    /// The parsed text of a node.
    ///
    /// A text that `parse` refuses is reported as not `expected`.
    func parsed<Value>(_ node: YAMLNode, _ expected: String, _ parse: (String) -> Value?) -> Value? {
        guard let text = node.text else {
            problems.add("this must be \(expected), not \(node.kind)", at: node.position)
            return nil
        }
        if let value = parse(text) { return value }
        problems.add("'\(text)' is not \(expected)", at: node.position)
        return nil
    }

    /// The elements of the list at `key`.
    mutating func list(_ key: String) -> [YAMLNode]? {
        guard let node = node(key) else { return nil }
        if let elements = node.elements { return elements }
        problems.add("'\(key)' must be a list, not \(node.kind)", at: node.position)
        return nil
    }

    /// The parsed elements of the list at `key`.
    mutating func list<Value>(_ key: String, _ expected: String, _ parse: (String) -> Value?) -> [Value]? {
        list(key)?.compactMap { parsed($0, expected, parse) }
    }

    /// The parsed members of the mapping at `key`.
    ///
    /// A value is a list or its only element.
    mutating func lists<Key, Value>(
        _ key: String,
        _ expectedKey: String,
        _ parseKey: (String) -> Key?,
        _ expected: String,
        _ parse: (String) -> Value?
    ) -> [(key: Key, value: [Value])]? {
        guard let node = node(key) else { return nil }
        guard let members = node.members else {
            problems.add("'\(key)' must be a mapping, not \(node.kind)", at: node.position)
            return nil
        }
        return members.compactMap { member in
            let values = (member.value.elements ?? [member.value]).compactMap { parsed($0, expected, parse) }
            guard let key = parsed(member.key, expectedKey, parseKey), !values.isEmpty else { return nil }
            return (key, values)
        }
    }

    /// The value of `key` as a case of an enumeration.
    mutating func word<Value: RawRepresentable<String> & CaseIterable>(_ key: String, _: Value.Type) -> Value? {
        value(key, "one of " + Value.allCases.map(\.rawValue).joined(separator: ", ")) { Value(rawValue: $0) }
    }

    /// Reports the members that were not read.
    func finish() {
        for member in members where !known.contains(member.name) {
            let hint = Spelling.nearest(to: member.name, among: known).map { "; did you mean '\($0)'?" } ?? ""
            problems.add("unknown key '\(member.name)'\(hint)", at: member.key.position)
        }
    }
}

// MARK: - The types of values in scenarios

extension MappingFields {
    mutating func duration(_ key: String) -> Duration? {
        value(key, ScenarioValue.durationWords, ScenarioValue.duration)
    }

    mutating func boolean(_ key: String) -> Bool? {
        value(key, "true or false", ScenarioValue.boolean)
    }

    mutating func rate(_ key: String) -> Double? {
        value(key, ScenarioValue.rateWords, ScenarioValue.rate)
    }

    mutating func octets(_ key: String) -> [UInt8]? {
        value(key, ScenarioValue.octetsWords, ScenarioValue.octets)
    }

    mutating func address(_ key: String) -> BluetoothAddress? {
        value(key, "a Bluetooth address; write for example C0:FF:EE:00:00:01") { BluetoothAddress($0) }
    }

    mutating func integer<Value: FixedWidthInteger>(_ key: String, in range: ClosedRange<Value>) -> Value? {
        value(key, "a whole number from \(range.lowerBound) to \(range.upperBound)") { text in
            ScenarioValue.integer(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }
}
