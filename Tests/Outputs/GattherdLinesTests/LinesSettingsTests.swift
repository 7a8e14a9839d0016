import GattherdConfig
import GattherdGateway
import GattherdLines
import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@Suite struct LinesSettingsTests {
    private func parse(_ text: String) -> (configuration: Configuration, errors: [ConfigError]) {
        Configuration.parseLeniently(
            [ConfigSource(name: "/etc/x/gattherd.yaml", text: text)],
            in: ConfigEnvironment(variables: ["FILE": "a.jsonl"], hostName: "host"),
            outputs: [LinesOutput.self]
        )
    }

    private func settings(_ text: String) throws -> LinesSettings {
        let (configuration, errors) = parse(text)
        try #require(errors.isEmpty, "\(errors)")
        return try #require(configuration.outputs.first?.settings(of: LinesOutput.self))
    }

    @Test func `a path is enough, and is relative to the folder of the file`() throws {
        let settings = try settings("lines: {path: '${FILE}'}")
        #expect(settings.path.value == "/etc/x/a.jsonl")
        #expect(settings.maxSize == nil && settings.keep == 5 && settings.isSynced)
    }

    @Test func `all keys of the section lines are read`() throws {
        let settings = try settings("lines: {path: /a, max_size: 2MiB, keep: 3, fsync: false, max_backlog: 5000}")
        #expect(settings.maxSize == 2 << 20 && settings.keep == 3 && !settings.isSynced)
    }

    @Test func `the consumer has the section's name, its limit and every entry`() throws {
        let section = try #require(parse("lines: {path: /a, max_backlog: 5000}").configuration.outputs.first)
        let output = try #require(ConfiguredOutput(section, LinesOutput.self))
        let expected = JournalConsumerOptions(name: "lines", content: .everything, longestBacklog: 5000)
        #expect(output.consumer == expected)
    }

    @Test func `each element of a list is an output with its own cursor`() throws {
        let (configuration, errors) = parse("lines: [{path: /a}, {name: archive, path: /b, max_backlog: 1000}]")
        #expect(errors.isEmpty)
        let consumers = configuration.outputs.compactMap { ConfiguredOutput($0, LinesOutput.self)?.consumer }
        #expect(consumers.map(\.name) == ["lines", "archive"])
        #expect(consumers.map(\.longestBacklog) == [nil, 1000])
        #expect(configuration.outputs.map { $0.settings(of: LinesOutput.self)?.path.value } == ["/a", "/b"])
    }

    @Test func `a mapping in one file and a list in another are several outputs`() throws {
        let sources = [
            ConfigSource(name: "/a.yaml", text: "lines: {path: /a}"),
            ConfigSource(name: "/b.yaml", text: "lines: [{name: b, path: /b}]"),
        ]
        let (configuration, errors) = Configuration.parseLeniently(
            sources,
            in: ConfigEnvironment(variables: [:], hostName: "host"),
            outputs: [LinesOutput.self]
        )
        #expect(errors.isEmpty, "\(errors)")
        #expect(configuration.outputs.map(\.name) == ["lines", "b"])
    }

    @Test(arguments: [
        ("lines: [{path: /a}, {path: /b}]", "1:21 duplicate the name 'lines' is used at"),
        ("lines: [{path: /a, name: a}, {path: /b, name: a}]", "1:47 duplicate the name 'a' is used at"),
        ("lines: [{path: /a, name: mqtt}]", "1:26 invalid_value 'mqtt' is not a name for this output"),
        ("lines: [{path: /a, name: A}]", "1:26 invalid_value 'A' is not a name"),
        ("lines: [{name: a}]", "1:9 missing_key 'lines' needs the key 'path'"),
        ("lines: [{path: /a, pth: /b}]", "1:20 unknown_key unknown key 'pth' in 'lines'"),
        ("lines: [/a]", "1:9 wrong_kind this is a text, but it must be a mapping"),
        ("lines: {}", "1:1 missing_key 'lines' needs the key 'path'"),
        ("lines: {pth: /a, path: /a}", "1:9 unknown_key unknown key 'pth' in 'lines'; did you mean 'path'?"),
        ("lines: {path: /a, maxbacklog: 1}", "1:19 unknown_key unknown key 'maxbacklog' in 'lines'; did you mean"),
        ("lines: {path: /a, max_backlog: 5}", "1:32 invalid_value '5' is not a whole number from 1000"),
        ("lines: {path: /a, max_size: 1kB}", "1:29 invalid_value '1kB' is not a size"),
        ("lines: {path: /a, keep: 2}", "1:19 missing_key 'lines' needs the key 'max_size'"),
        ("lines: {path: /a, max_size: 1kB, keep: 2}", "1:29 invalid_value '1kB' is not a size"),
        ("lines: {path: /a, fsync: maybe}", "1:26 invalid_value 'maybe' is not a boolean"),
        ("lines: /a", "1:8 wrong_kind this is a text, but it must be a mapping"),
        ("line: {path: /a}", "1:1 unknown_key unknown key 'line' in the configuration; did you mean 'lines'?"),
        ("zzzzzz: 1", "mqtt, lines, http, log"),
    ])
    func `an error has a place and a remedy`(text: String, expected: String) throws {
        let error = try #require(parse(text).errors.first)
        let place = try #require(error.place)
        let words = "\(place.line):\(place.column) \(error.problem.kind) \(error.problem)"
        #expect(words.contains(expected), "\(words)")
        #expect(parse(text).errors.count == 1)
    }

    @Test func `only a change of the section differs`() {
        let one = parse("lines: {path: /a}").configuration
        #expect(one.outputs == parse("\n\nlines:\n  path: /a").configuration.outputs)
        for other in ["{path: /b}", "{path: /a, fsync: false}", "{path: /a, max_backlog: 1000}", "{}"] {
            #expect(one.outputs != parse("lines: \(other)").configuration.outputs, "\(other)")
        }
    }

    @Test func `a path that cannot be used is a warning of check`() throws {
        let folder = try TemporaryFolder()
        for (path, advice) in [(folder.path, "name a file"), (folder.file("no/a"), "mkdir -p")] {
            let configuration = parse("lines: {path: '\(path)'}").configuration
            let finding = try #require(configuration.outputFindings.first)
            #expect(finding.severity == .warning && finding.place?.column == 15)
            #expect(finding.problem.description.contains(advice))
        }
        #expect(parse("lines: {path: '\(folder.file("a"))'}").configuration.outputFindings.isEmpty)
    }
}
