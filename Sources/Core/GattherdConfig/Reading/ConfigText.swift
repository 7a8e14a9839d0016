import GattherdYAML

/// Text of configuration files.
package enum ConfigText {
    /// Returns text as a YAML scalar of one line in quotes, without substitutions.
    package static func quoted(_ text: String) -> String {
        "'" + text.replacing("'", with: "''").replacing("${", with: "$${") + "'"
    }
}

/// A change of some keys of one device in the text of a file; comments and layout stay.
///
/// The result must be read again and compared: not every form of YAML can be changed.
package struct DeviceTextEdit {
    /// A key and its new text; `nil` removes the key.
    package typealias Change = (key: String, text: String?)

    private let scalars: [Unicode.Scalar]
    private let lineStarts: [Int]
    private var replacements: [(range: Range<Int>, text: String)] = []

    private init(_ text: String) {
        scalars = Array(text.unicodeScalars)
        lineStarts = [0] + scalars.indices.filter { [scalars] in scalars[$0] == "\n" }.map { $0 + 1 }
    }

    /// Returns the text of a file with the changed keys of a device; `nil` if the file has no such device.
    package static func apply(_ changes: [Change], to device: String, in bytes: [UInt8]) -> [UInt8]? {
        guard let root = try? YAML.parse(bytes), let text = String(validating: bytes, as: UTF8.self) else { return nil }
        let nodes = root["devices"]?.elements ?? []
        guard let node = nodes.first(where: { $0["name"]?.text == device }) else { return nil }
        var edit = DeviceTextEdit(text)
        edit.add(changes, node)
        return Array(edit.result.utf8)
    }

    private mutating func add(_ changes: [Change], _ node: YAMLNode) {
        guard let members = node.members, let name = members.first(where: { $0.name == "name" }) else { return }
        let isFlow = scalar(at: offset(node.position)) == "{"
        var added: [String] = []
        for change in changes {
            let index = members.firstIndex { $0.name == change.key }
            switch (change.text, index) {
            case (let text?, let index?):
                let value = members[index].value
                let gap = value.position == value.end ? " " : ""
                replace(offset(value.position)..<offset(value.end), gap + ConfigText.quoted(text))
            case (let text?, nil): added.append("\(change.key): \(ConfigText.quoted(text))")
            case (nil, let index?): remove(index, members, isFlow: isFlow)
            case (nil, nil): break
            }
        }
        insert(added, after: name, isFlow: isFlow)
    }

    /// Inserts members after another one: in the same line of a flow mapping, else in lines of their own.
    private mutating func insert(_ members: [String], after member: YAMLMember, isFlow: Bool) {
        guard !members.isEmpty else { return }
        let end = offset(member.value.end)
        guard !isFlow else { return replace(end..<end, members.map { ", " + $0 }.joined()) }
        let indent = String(repeating: " ", count: member.key.position.column - 1)
        let lineEnd = scalars[end...].firstIndex { $0 == "\n" || $0 == "\r" } ?? scalars.count
        let lineBreak = scalar(at: lineEnd) == "\r" ? "\r\n" : "\n"
        replace(lineEnd..<lineEnd, members.map { lineBreak + indent + $0 }.joined())
    }

    /// Removes a member: up to the next one if it is the first, else from the end of the one before.
    private mutating func remove(_ index: Int, _ members: [YAMLMember], isFlow: Bool) {
        let member = members[index]
        if index == 0, members.count > 1 {
            replace(offset(member.key.position)..<offset(members[1].key.position), "")
        } else if isFlow, index > 0 {
            replace(offset(members[index - 1].value.end)..<offset(member.value.end), "")
        } else {
            replace(start(ofLine: member.key.position.line)..<start(ofLine: member.value.end.line + 1), "")
        }
    }

    private mutating func replace(_ range: Range<Int>, _ text: String) { replacements.append((range, text)) }

    private var result: String {
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

    private func scalar(at index: Int) -> Unicode.Scalar? { scalars.indices.contains(index) ? scalars[index] : nil }

    private func start(ofLine line: Int) -> Int {
        lineStarts.indices.contains(line - 1) ? lineStarts[line - 1] : scalars.count
    }

    private func offset(_ position: YAMLPosition) -> Int {
        min(start(ofLine: position.line) + position.column - 1, scalars.count)
    }
}
