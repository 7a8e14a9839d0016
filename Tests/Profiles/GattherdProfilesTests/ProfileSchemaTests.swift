import Foundation
import GattherdModel
import GattherdProfiles
import GattherdYAML
import TestKit
import Testing

/// Agreement of the JSON schema for editors with the compiler.
struct ProfileSchemaTests {
    private static let standard = SharedLibrary.root + "/Plugins/Standard"
    private let schema: JSONSchema

    init() throws {
        schema = try JSONSchema(path: Self.standard + "/profile.schema.json")
    }

    private func accepts(_ text: String) throws -> Bool {
        schema.accepts(EditorValue(try #require(try YAML.parse(text))))
    }

    @Test func `every included profile matches the schema`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.standard).filter { $0.hasSuffix(".yaml") }
        #expect(names.count >= 23)
        for name in names {
            #expect(try accepts(String(contentsOfFile: "\(Self.standard)/\(name)", encoding: .utf8)), "\(name)")
        }
    }

    @Test(
        arguments: [
            ("model", "identify: [{wrong_key_here: 1}]"),
            ("profile", "wrong_key_here: 1"), ("characteristic", "characteristics: [{wrong_key_here: 1}]"),
            ("field", "characteristics: [{fields: [{metric: x, type: u8, wrong_key_here: 1}]}]"),
            ("test", "characteristics: [{tests: [{wrong_key_here: 1}]}]"),
            ("subscribe", "characteristics: [{subscribe: {wrong_key_here: 1}}]"),
            ("read", "characteristics: [{subscribe: {read: {wrong_key_here: 1}}}]"),
            ("advertisement", "advertisement: [{wrong_key_here: 1}]"),
            ("check", "characteristics: [{check: {wrong_key_here: 1}}]"),
            ("decrypt", "advertisement: [{fields: [{decrypt: {wrong_key_here: 1}}]}]"),
            ("objects", "advertisement: [{fields: [{objects: {wrong_key_here: 1}}]}]"),
            ("part", "advertisement: [{after: {wrong_key_here: 1}}]"),
            ("control", "controls: [{wrong_key_here: 1}]"), ("task", "on_connect: [{wrong_key_here: 1}]"),
            ("record", "characteristics: [{fields: [{metric: x, type: u8}], record: {wrong_key_here: 1}}]"),
            ("download", "records: [{wrong_key_here: 1}]"),
            ("message", "characteristics: [{subscribe: notify, message: {wrong_key_here: 1}}]"),
            ("poll", "characteristics: [{subscribe: notify, poll: {wrong_key_here: 1}}]"),
            ("clock", "records: [{stream: x, racp: 2a52, clock: {wrong_key_here: 1}}]"),
            ("resume", "on_connect: [{uuid: 2a39, write: 00, resume: {wrong_key_here: 1}}]"),
            ("control_test", "controls: [{name: x, uuid: 2a39, type: u8, tests: [{wrong_key_here: 1}]}]"),
            ("answer", "controls: [{name: x, uuid: 2a39, type: u8, answer: {wrong_key_here: 1}}]"),
        ]
    )
    func `the schema has exactly the keys of the compiler`(mapping: String, line: String) throws {
        let errors = try DeclarativeText.errors("contract: 1\nprofile: x\nservices: [180d]\n\(line)")
        let error = try #require(errors.first { $0.contains("no key 'wrong_key_here'; it may have ") })
        let known = try #require(error.components(separatedBy: "it may have ").last).components(separatedBy: ", ")
        let definition = mapping == "profile" ? schema.root : try #require(schema.definition(mapping))
        #expect(Set(try #require(definition["properties"]?.object).keys) == Set(known))
    }

    @Test func `the schema has exactly the types of the compiler`() throws {
        let sizes = [7, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 128]
        let orders = ["", "le", "be", "el"]
        let numbers = ["u", "i", "f", "uuid"].flatMap { letter in
            sizes.flatMap { size in orders.map { "\(letter)\(size)\($0)" } }
        }
        let words = [
            "sfloat", "float", "bool", "datetime", "date", "utf8", "ascii", "bytes", "string", "int", "uuid", "time",
        ]
        for type in numbers + words {
            let text = DeclarativeText.profile(fields: ["{metric: x, type: \(type)}"])
            #expect(try accepts(text) == DeclarativeText.errors(text).isEmpty, "\(type)")
        }
    }

    @Test(
        arguments: [
            "{metric: x, flags: x, type: u8}", "{type: u8}", "{metric: X, type: u8}",
            "{metric: x, type: u8, kind: gage}",
            "{metric: x, type: u8, range: [1]}", "{metric: x, type: u8, scale: many}",
            "{metric: x, type: u8, enum: {a: b}}", "{metric: x, type: u8, enum: {}}",
            "{metric: x, type: u8, unknown: x}", "{metric: x, type: u8, signed: maybe}", "{metric: x, from: 1, as: u8}",
            "{metric: x, type: u8, unti: m}", "{fields: [], repeat: 2}", "{metric: x, type: u8, wraps: all}",
        ]
    )
    func `the compiler refuses the fields that the schema refuses`(field: String) throws {
        let text = DeclarativeText.profile(fields: [field])
        #expect(try !accepts(text))
        #expect(try !DeclarativeText.errors(text).isEmpty)
    }

    @Test(
        arguments: [
            "{metric: x, type: u8, scale: 60 * 1024/7, offset: -1.5, unknown: [1, 0x02], unit: 5}",
            "{metric: x, type: i8, enum: {-1: a, 0x01: b}}", "{metric: x, type: u8, unknown: {255: not known}}",
            "{skip: 2}", "{flags: f, type: u8, is: 5}", "{flags: f, type: u8, is: [5, 0x06]}",
            "{metric: x, type: u8, when: 1, repeat: rest}", "{repeat: 2, fields: [{metric: x, type: u8}]}",
            "{metric: x, type: utf8, length: left - 1}", "{metric: x, from: octets, base: 1.1, kind: event}",
            "{when: left, fields: [{metric: x, type: u8}]}",
        ]
    )
    func `the schema accepts the fields that the compiler accepts`(field: String) throws {
        let text = DeclarativeText.profile(fields: [field, "{metric: y, from: octets}"])
        #expect(try DeclarativeText.errors(text) == [])
        #expect(try accepts(text))
    }

    @Test(
        arguments: [
            "message: {begins: DD, length: {at: 3, type: u8, add: 7}}",
            "message: {begins: [DD 03, 'AA ??'], end: '77'}",
            "message: {length: 300, ignore: 41 54, within: 1s}", "poll: {every: 5s, write: 01}",
            "poll: {every: 30s, uuid: ff02, service: ff00, write: [01, 02 03], response: false, within: 1s}",
            "poll: {every: 30s, write: [01 02 77, 03 04 77], check: {kind: sum8, bytes: 1..-2, at: -2}}",
        ]
    )
    func `the schema accepts the messages and requests that the compiler accepts`(line: String) throws {
        let text = DeclarativeText.profile(fields: ["{metric: x, type: u8}"], more: "    " + line)
        #expect(try DeclarativeText.errors(text) == [])
        #expect(try accepts(text))
    }

    @Test(
        arguments: [
            "controls: [{name: x, uuid: 2a39, type: u8, check: {kind: sum8}, tests: [{set: 1, hex: 01 01}]}]",
            "controls: [{name: x, uuid: 2a39, type: u8, tests: [{set: x, reject: true}]}]",
            "controls: [{name: x, uuid: 2a39, trigger: 01, tests: [{hex: 01}]}]",
            "on_connect: [{uuid: 2a39, write: 01, check: {kind: crc16, order: be}}]",
            "on_connect: [{uuid: 2a39, write: '01 {year-2000:u8}{month:u8} {now:u32be}'}]",
        ]
    )
    func `the schema accepts the writes that the compiler accepts`(line: String) throws {
        let text = DeclarativeText.profile(fields: ["{metric: x, type: u8}"], more: line)
        #expect(try DeclarativeText.errors(text) == [])
        #expect(try accepts(text))
    }

    /// The pages of the format.
    private static func referencePages() throws -> String {
        try ["docs/profiles.md", "docs/advertisements.md"].map {
            try String(contentsOf: Checkout.root.appending(path: $0), encoding: .utf8)
        }.joined()
    }

    @Test func `the reference pages list every key and type`() throws {
        let page = try Self.referencePages()
        let mappings = [
            "characteristic", "field", "test", "advertisement", "part", "check", "decrypt", "objects", "control",
            "control_test", "task", "answer", "message", "poll",
        ].map { schema.definition($0) }
        for mapping in mappings + [schema.root] {
            for key in try #require(mapping?["properties"]?.object).keys {
                #expect(page.contains("`\(key)`") || page.contains("`\(key):"), "\(key)")
            }
        }
        for word in [
            "sfloat", "float", "f32le", "bool", "datetime", "date", "uuid16", "uuid128", "utf8", "ascii", "bytes",
        ] {
            #expect(page.contains("`\(word)`"), "\(word)")
        }
    }

    @Test func `every profile of the reference pages matches the schema and passes its tests`() throws {
        let page = try Self.referencePages()
        let texts = page.components(separatedBy: "```yaml\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
        #expect(texts.count >= 7)
        for text in texts {
            #expect(try accepts(text), "\(text)")
            let results = ProfileTools.runVectors(of: try DeclarativeText.compile(text))
            #expect(!results.isEmpty)
            #expect(results.compactMap(\.failure) == [], "\(text)")
        }
    }

    @Test func `the first profile of the reference pages works`() throws {
        let page = try Self.referencePages()
        let text = try #require(page.components(separatedBy: "```yaml\n").dropFirst().first)
        let profile = try DeclarativeText.compile(try #require(text.components(separatedBy: "```").first))
        let results = ProfileTools.runVectors(of: profile)
        #expect(results.count == 4 && results.allSatisfy { $0.failure == nil })
        #expect(try profile.encode(control: 0, value: .integer(60)) == [0x01, 0x3C, 0x00])
    }
}
