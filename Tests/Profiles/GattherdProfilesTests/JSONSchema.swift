import Foundation
import GattherdYAML
import Testing

/// A YAML value as editors see it: plain scalars may be numbers, Booleans or null.
enum EditorValue: Equatable {
    case null
    case boolean(Bool)
    case number(Double)
    case text(String)
    case list([EditorValue])
    case object([String: EditorValue])

    init(_ node: YAMLNode) {
        switch node.content {
        case .scalar(let text, let isPlain): self = isPlain ? Self.plain(text) : .text(text)
        case .sequence(let elements): self = .list(elements.map { EditorValue($0) })
        case .mapping(let members):
            self = .object(Dictionary(uniqueKeysWithValues: members.map { ($0.name, EditorValue($0.value)) }))
        }
    }

    private static func plain(_ text: String) -> EditorValue {
        if ["", "~", "null"].contains(text) { return .null }
        if ["true", "false"].contains(text) { return .boolean(text == "true") }
        if text.hasPrefix("0x"), let number = UInt64(text.dropFirst(2), radix: 16) { return .number(Double(number)) }
        return Double(text).map { .number($0) } ?? .text(text)
    }

    subscript(key: String) -> EditorValue? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    var text: String? { if case .text(let text) = self { text } else { nil } }
    var list: [EditorValue]? { if case .list(let list) = self { list } else { nil } }
    var object: [String: EditorValue]? { if case .object(let object) = self { object } else { nil } }

    var typeNames: [String] {
        switch self {
        case .null: ["null"]
        case .boolean: ["boolean"]
        case .number(let number): number == number.rounded() ? ["number", "integer"] : ["number"]
        case .text: ["string"]
        case .list: ["array"]
        case .object: ["object"]
        }
    }
}

/// As much of JSON Schema, draft 7, as the profile's schema uses.
struct JSONSchema {
    let root: EditorValue

    /// JSON is YAML, too.
    init(path: String) throws {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        root = EditorValue(try #require(try YAML.parse(text)))
    }

    func definition(_ name: String) -> EditorValue? { root["definitions"]?[name] }

    func accepts(_ value: EditorValue) -> Bool { accepts(value, root) }

    private func accepts(_ value: EditorValue, _ schema: EditorValue) -> Bool {
        if let reference = schema["$ref"]?.text {
            guard let target = definition(String(reference.dropFirst("#/definitions/".count))) else { return false }
            return accepts(value, target)
        }
        return hasType(value, schema) && isOneOfThose(value, schema) && fitsText(value, schema)
            && fitsObject(value, schema) && fitsList(value, schema) && fitsBranches(value, schema)
    }

    private func hasType(_ value: EditorValue, _ schema: EditorValue) -> Bool {
        guard let type = schema["type"] else { return true }
        let allowed = type.list?.compactMap(\.text) ?? [type.text ?? ""]
        return !Set(allowed).isDisjoint(with: value.typeNames)
    }

    private func isOneOfThose(_ value: EditorValue, _ schema: EditorValue) -> Bool {
        (schema["const"].map { $0 == value } ?? true) && (schema["enum"]?.list?.contains(value) ?? true)
    }

    private func fitsText(_ value: EditorValue, _ schema: EditorValue) -> Bool {
        guard let text = value.text else { return true }
        let longest = number(schema["maxLength"]) ?? .max
        guard text.count <= longest, text.count >= number(schema["minLength"]) ?? 0 else { return false }
        return schema["pattern"]?.text.map { text.range(of: $0, options: .regularExpression) != nil } ?? true
    }

    private func fitsList(_ value: EditorValue, _ schema: EditorValue) -> Bool {
        guard let list = value.list else { return true }
        guard list.count >= number(schema["minItems"]) ?? 0, list.count <= number(schema["maxItems"]) ?? .max else {
            return false
        }
        return schema["items"].map { items in list.allSatisfy { accepts($0, items) } } ?? true
    }

    private func fitsObject(_ value: EditorValue, _ schema: EditorValue) -> Bool {
        guard let object = value.object else { return true }
        let required = schema["required"]?.list?.compactMap(\.text) ?? []
        guard required.allSatisfy({ object[$0] != nil }), object.count >= number(schema["minProperties"]) ?? 0 else {
            return false
        }
        return object.allSatisfy { key, member in
            if let names = schema["propertyNames"], !accepts(.text(key), names) { return false }
            if let known = schema["properties"]?[key] { return accepts(member, known) }
            guard let others = schema["additionalProperties"] else { return true }
            return others != .boolean(false) && accepts(member, others)
        }
    }

    private func fitsBranches(_ value: EditorValue, _ schema: EditorValue) -> Bool {
        let all = schema["allOf"]?.list?.allSatisfy { accepts(value, $0) } ?? true
        let any = schema["anyOf"]?.list?.contains { accepts(value, $0) } ?? true
        return all && any && schema["oneOf"]?.list?.count { accepts(value, $0) } ?? 1 == 1
    }

    private func number(_ value: EditorValue?) -> Int? {
        if case .number(let number) = value { Int(number) } else { nil }
    }
}
