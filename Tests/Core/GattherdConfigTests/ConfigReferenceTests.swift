import Foundation
import GattherdGateway
import TestKit
import Testing

@testable import GattherdConfig

/// The reference of the configuration, which is made from its readers.
@Suite struct ConfigReferenceTests {
    private static let reference = ConfigReference(outputs: OutputRegistry.definitions)

    /// The required keys of a section other than the tested one.
    private static let companions = [
        "alerts": "name: x, metric: y, below: 1",
        "devices": "name: strap, address: 'C0:FF:EE:00:00:01'", "enrol": "name: 'x-{address}', match: {name: x}",
        "mqtt": "url: 'mqtts://localhost'", "http": "listen: '127.0.0.1:1'", "lines": "path: x, max_size: 1MiB",
        "influx": "url: 'https://localhost', database: x", "sparkplug": "url: 'mqtts://localhost'",
        "postgres": "url: 'postgresql://localhost/x'",
    ]

    /// A configuration with `leaf` in the section that contains an entry.
    private static func document(_ entry: ConfigReference.Entry, _ leaf: String) -> String {
        let names = entry.path.split(separator: ".").map(String.init)
        var text = leaf
        for depth in stride(from: names.count - 1, to: 0, by: -1) {
            let section = names[..<depth].joined(separator: ".")
            let own = companions[section].map { without(names[depth], $0) } ?? ""
            let members = [own, text].filter { !$0.isEmpty }.joined(separator: ", ")
            let isList = ["alerts", "devices", "enrol"].contains(section)
            text = "\(names[depth - 1]): " + (isList ? "[{\(members)}]" : "{\(members)}")
        }
        // With rules, an alert may name a device that no list has.
        return entry.path.hasPrefix("alerts.") ? text + "\nenrol: [{\(companions["enrol"] ?? "")}]" : text
    }

    /// The members of a mapping without one of them.
    private static func without(_ name: String, _ members: String) -> String {
        members.split(separator: ", ").filter { !$0.hasPrefix(name + ":") }.joined(separator: ", ")
    }

    @Test(arguments: reference.all)
    func `every key has a description, and every value an example`(entry: ConfigReference.Entry) {
        #expect(entry.description?.text.isEmpty == false, "\(entry.path)")
        if entry.entries == nil { #expect(entry.description?.example != nil, "\(entry.path)") }
    }

    @Test(arguments: reference.all.filter { $0.description?.example != nil })
    func `every example is valid`(entry: ConfigReference.Entry) {
        let text = Self.document(entry, "\(entry.name): \(entry.description?.example ?? "")")
        let wrong = errors(in: text).filter { error in
            switch error.problem {
            case .conflict, .missing: false
            default: true
            }
        }
        #expect(wrong.isEmpty, "\(text): \(wrong)")
    }

    @Test(arguments: reference.all.filter { $0.description?.standard != nil && $0.path != "gateway" })
    func `every documented default is that of the reader`(entry: ConfigReference.Entry) throws {
        let written = try parse(Self.document(entry, "\(entry.name): \(entry.description?.standard ?? "")"))
        #expect(written == (try parse(Self.document(entry, ""))), "\(entry.path)")
    }

    @Test func `every description belongs to a key`() {
        let paths = Set(Self.reference.all.map(\.path))
        for kind in OutputRegistry.definitions {
            for key in kind.descriptions.keys where !key.isEmpty {
                #expect(paths.contains("\(kind.section).\(key)"), "\(kind.section).\(key)")
            }
        }
        #expect(Set(ConfigDescriptions.all.keys).subtracting(paths) == [])
    }

    @Test func `the generated page equals the documentation of the configuration`() throws {
        let url = Checkout.root.appending(path: "docs/configuration.md")
        let written = String(decoding: try Data(contentsOf: url), as: UTF8.self)
        #expect(written == Self.reference.page, "run: gattherd config page > docs/configuration.md")
    }

    @Test func `the manual has every key, and no line of text is read as a request`() {
        let lines = Self.reference.manual(version: "1.2.3").split(separator: "\n")
        for entry in Self.reference.all { #expect(lines.contains(".B \(entry.path.replacing("-", with: "\\-"))")) }
        let requests = Set([".TH", ".SH", ".TP", ".B", ".BR", ".I", ".br", ".PP"])
        for line in lines where line.first == "." || line.first == "'" {
            #expect(requests.contains(String(line.prefix { $0 != " " })), "\(line)")
        }
    }

    @Test func `the schema has every key, and allows no others`() throws {
        let schema = try JSONSerialization.jsonObject(with: Data(Self.reference.schema.utf8))
        check(try #require(schema as? [String: Any]), Self.reference.entries)
    }

    /// Compares the schema of a mapping with its keys.
    private func check(_ schema: [String: Any], _ entries: [ConfigReference.Entry]) {
        let fixed = entries.filter { $0.name != "NAME" }
        let properties = schema["properties"] as? [String: [String: Any]] ?? [:]
        #expect(Set(properties.keys) == Set(fixed.map(\.name)))
        if fixed.count == entries.count { #expect(schema["additionalProperties"] as? Bool == false) }
        for entry in fixed {
            guard let nested = entry.entries else { continue }
            let forms = properties[entry.name]?["anyOf"] as? [[String: Any]] ?? []
            let sections = forms.map { $0["items"] as? [String: Any] ?? $0 }.filter { $0["properties"] != nil }
            #expect(!sections.isEmpty, "\(entry.path)")
            for section in sections { check(section, nested) }
        }
    }

    @Test func `the schema knows kinds of values`() {
        let schema = Self.reference.schema
        #expect(schema.contains(##""connect_timeout":{"description":"The limit of one connection attempt."##))
        let duration = ##"[{"$ref":"#/definitions/duration"},{"type":"null"},{"$ref":"#/definitions/variable"}]"##
        #expect(schema.contains(duration))
        #expect(schema.contains(#""enum":["5","3.1.1",5.0]"#))
        #expect(schema.contains(#""required":["name","address"]"#))
    }
}
