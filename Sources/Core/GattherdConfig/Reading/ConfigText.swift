import GattherdModel
import GattherdYAML

/// Text of configuration files.
package enum ConfigText {
    /// Returns text as a YAML scalar of one line in quotes, without substitutions.
    package static func quoted(_ text: String) -> String {
        quotedWithVariables(text.replacingScalars("${", with: "$${"))
    }

    /// Returns text as a YAML scalar of one line in quotes; its variables stay.
    package static func quotedWithVariables(_ text: String) -> String {
        "'" + text.replacingScalars("'", with: "''") + "'"
    }

    /// Returns text as a YAML scalar of one line: plain if it cannot be read as anything else.
    package static func scalar(_ text: String) -> String {
        let isPlain = Slug.isValid(text) && text != "null" && !text.hasPrefix("-")
        return isPlain ? text : quoted(text)
    }
}

/// A change of some keys of one device in the text of a file; comments and layout stay.
///
/// The result must be read again and compared: not every form of YAML can be changed.
package struct DeviceTextEdit {
    /// A key and its new text; `nil` removes the key.
    package typealias Change = (key: String, text: String?)

    private var text: TextEdit

    /// Returns the text of a file with the changed keys of a device; `nil` if the file has no such device.
    package static func apply(_ changes: [Change], to device: String, in bytes: [UInt8]) -> [UInt8]? {
        guard let root = try? YAML.parse(bytes), let text = String(validating: bytes, as: UTF8.self) else { return nil }
        let nodes = root["devices"]?.elements ?? []
        guard let node = nodes.first(where: { $0["name"]?.text == device }) else { return nil }
        var edit = DeviceTextEdit(text: TextEdit(text))
        edit.add(changes, node)
        return Array(edit.text.result.utf8)
    }

    private mutating func add(_ changes: [Change], _ node: YAMLNode) {
        guard let members = node.members, let name = members.first(where: { $0.name == "name" }) else { return }
        let isFlow = text.scalar(at: text.offset(node.position)) == "{"
        var added: [String] = []
        for change in changes {
            let index = members.firstIndex { $0.name == change.key }
            switch (change.text, index) {
            case (let new?, let index?):
                let value = members[index].value
                let gap = value.position == value.end ? " " : ""
                text.replace(text.offset(value.position)..<text.offset(value.end), gap + ConfigText.quoted(new))
            case (let new?, nil): added.append("\(change.key): \(ConfigText.quoted(new))")
            case (nil, let index?): remove(index, members, isFlow: isFlow)
            case (nil, nil): break
            }
        }
        insert(added, after: name, isFlow: isFlow)
    }

    /// Inserts members after another one: in the same line of a flow mapping, else in lines of their own.
    private mutating func insert(_ members: [String], after member: YAMLMember, isFlow: Bool) {
        guard !members.isEmpty else { return }
        let end = text.offset(member.value.end)
        guard !isFlow else { return text.replace(end..<end, members.map { ", " + $0 }.joined()) }
        let indent = String(repeating: " ", count: member.key.position.column - 1)
        let lineEnd = text.scalars[end...].firstIndex { $0 == "\n" || $0 == "\r" } ?? text.scalars.count
        let lineBreak = text.scalar(at: lineEnd) == "\r" ? "\r\n" : "\n"
        text.replace(lineEnd..<lineEnd, members.map { lineBreak + indent + $0 }.joined())
    }

    /// Removes a member: up to the next one if it is the first, else from the end of the one before.
    private mutating func remove(_ index: Int, _ members: [YAMLMember], isFlow: Bool) {
        let member = members[index]
        if index == 0, members.count > 1 {
            text.replace(text.offset(member.key.position)..<text.offset(members[1].key.position), "")
        } else if isFlow, index > 0 {
            text.replace(text.offset(members[index - 1].value.end)..<text.offset(member.value.end), "")
        } else {
            let end = text.start(ofLine: member.value.end.line + 1)
            text.replace(text.start(ofLine: member.key.position.line)..<end, "")
        }
    }
}
