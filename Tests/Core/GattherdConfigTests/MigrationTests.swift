import GattherdGateway
import Testing

@testable import GattherdConfig

/// Renamed keys, with a table of invented renames.
@Suite struct MigrationTests {
    private static let renames = [
        ConfigRename(["bluetooth"], "spin", to: "turns", since: "0.2"),
        ConfigRename(["bluetooth"], "turns", to: "rotate", since: "0.3"),
        ConfigRename(["devices"], "label", to: "title", since: "0.2"),
        ConfigRename(["devices", "publish", "streams", "*"], "pulse", to: "heartbeat", since: "0.2"),
        ConfigRename([], "journal", to: "history", since: "0.2"),
        ConfigRename(["history"], "limit", to: "max_size", since: "0.2"),
    ]

    private func migrate(_ text: String) throws -> (text: String, keys: [OldKey]) {
        let migration = try ConfigMigration(ConfigSource(name: "g.yaml", text: text), Self.renames)
        return (String(decoding: migration.bytes, as: UTF8.self), migration.oldKeys)
    }

    private func read(_ text: String) -> (configuration: Configuration, errors: [ConfigError]) {
        Configuration.parseLeniently(
            [ConfigSource(name: "g.yaml", text: text)],
            in: ConfigEnvironment(variables: [:], hostName: "lab"),
            outputs: OutputRegistry.definitions,
            renames: Self.renames
        )
    }

    @Test func `a migration changes key names, and keeps comments, order and layout`() throws {
        let text = """
            # mine
            journal: {limit: 1GiB}   # not too much
            devices:

              - address: C0:FF:EE:00:00:01
                'label':   Chest strap   # for people
                name: strap
                publish: {streams: {battery: {pulse: 1h}}}
            bluetooth:
              spin: 5m\r
            """
        let expected = """
            # mine
            history: {max_size: 1GiB}   # not too much
            devices:

              - address: C0:FF:EE:00:00:01
                title:   Chest strap   # for people
                name: strap
                publish: {streams: {battery: {heartbeat: 1h}}}
            bluetooth:
              rotate: 5m\r
            """
        let (migrated, keys) = try migrate(text)
        #expect(migrated == expected)
        #expect(keys.map(\.place.line) == [2, 2, 6, 8, 10])
        #expect(try migrate(migrated).keys.isEmpty)
    }

    @Test func `a file with old names is read like one with new names, and warned of`() {
        let old = read("bluetooth: {spin: 5m}\ndevices: [{name: a, address: C0:FF:EE:00:00:01, label: A}]\n")
        let new = read("bluetooth: {rotate: 5m}\ndevices: [{name: a, address: C0:FF:EE:00:00:01, title: A}]\n")
        #expect(old.errors.isEmpty && new.errors.isEmpty)
        #expect(old.configuration.bluetooth == new.configuration.bluetooth)
        #expect(old.configuration.devices == new.configuration.devices)
        #expect(new.configuration.oldKeys.isEmpty)
        let findings = old.configuration.oldKeys.map(\.finding)
        #expect(findings.map(\.severity) == [.warning, .warning])
        let words = "'spin' is 'rotate' since version 0.3; run 'gattherd migrate', which changes the file"
        #expect(findings.first?.problem.description == words)
        #expect(findings.first?.place?.description == "g.yaml:1:13")
    }

    @Test func `a key with an old name in another section is unknown`() throws {
        #expect(read("mqtt: {url: 'mqtt://x', spin: 5m}").errors.map(\.problem.kind) == ["unknown_key"])
        #expect(try migrate("mqtt: {spin: 5m}").keys.isEmpty)
    }

    @Test func `both names in one section are a mistake, and nothing is changed`() throws {
        let text = "bluetooth: {turns: 5m, rotate: 6m}\n"
        #expect(read(text).errors.map(\.problem.kind) == ["unknown_key"])
        #expect(try migrate(text).text == text)
    }

    @Test func `a byte order mark stays`() throws {
        #expect(try migrate("\u{FEFF}journal: {}\n").text == "\u{FEFF}history: {}\n")
    }

    @Test func `a text that is not YAML is an error with its place`() {
        let errors = #expect(throws: ConfigErrors.self) { _ = try migrate("journal: [\n") }
        #expect(errors?.errors.first?.problem.kind == "syntax")
    }

    @Test func `the printed difference has the changed lines with their context`() {
        let lines = (1...20).map { "line \($0)" }
        var changed = lines
        (changed[4], changed[18]) = ("LINE 5", "LINE 19")
        let difference = LineDifference(lines.joined(separator: "\n") + "\n", changed.joined(separator: "\n") + "\n")
        #expect(
            difference.lines(of: "g.yaml") == [
                "--- g.yaml", "+++ g.yaml", "@@ -2,7 +2,7 @@", " line 2", " line 3", " line 4", "-line 5", "+LINE 5",
                " line 6", " line 7", " line 8", "@@ -16,5 +16,5 @@", " line 16", " line 17", " line 18", "-line 19",
                "+LINE 19", " line 20",
            ]
        )
        #expect(LineDifference("a\n", "a\n").lines(of: "g.yaml").isEmpty)
    }
}
