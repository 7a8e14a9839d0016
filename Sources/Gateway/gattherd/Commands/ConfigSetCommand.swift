import GattherdConfig
import GattherdGateway
import GattherdSync
import GattherdYAML
import Glibc

extension CommandSpec {
    static let configurationSet = CommandSpec(
        name: "config set",
        summary: "set keys of the configuration",
        positionals: [PositionalSpec(name: "KEY=VALUE", isRepeated: true)],
        options: [ConfigurationFile.option, .flag("yes", "ask nothing")],
        details: """
            KEY is a key with one value in docs/configuration.md, after its sections and with dots between them:
            mqtt.url. VALUE is taken as it is; variables are not replaced. Devices, rules and other lists have no such
            keys: use 'gattherd add', or write them into a file.

            The command checks the configuration with the new values as 'gattherd check' does. It then writes
            gattherd.d/SECTION.yaml beside the configuration, or gattherd.d/gateway.yaml for the gateway's name. Other
            keys in that file stay. The daemon reloads, and the command shows what needs a restart. To remove keys, use
            'gattherd config unset'.

            It changes no other file and removes no comment and no list: if the section is in another file, or its own
            file has more than single values, it fails and names the line.
            """,
        exits: [
            .cannotCreate: "the key must be set by hand in another file, or a file cannot be written",
            .unavailable: "the file is written, but the daemon hangs or refuses this user",
            .temporary: "the file is written, but the daemon reads its files later: a file system or a profile hangs",
            .configuration: "the configuration is wrong with the new values",
        ],
        examples: [
            "sudo gattherd config set mqtt.url=mqtt://localhost:1883",
            "sudo gattherd config set http.listen=127.0.0.1:8780 http.token_file=/etc/gattherd/http-token",
            "sudo gattherd config set gateway=attic --yes",
        ],
        run: { (arguments) throws(CommandFailure) in try ConfigSetCommand(arguments).run() }
    )

    static let configurationUnset = CommandSpec(
        name: "config unset",
        summary: "remove keys of the configuration",
        positionals: [PositionalSpec(name: "KEY", isRepeated: true)],
        options: [ConfigurationFile.option, .flag("yes", "ask nothing")],
        details: """
            KEY is written as for 'gattherd config set': mqtt.url. Its default in docs/configuration.md takes its place.
            A section, such as mqtt or mqtt.tls, is removed with all its keys.

            The command checks the configuration without the keys as 'gattherd check' does. It then removes them from
            the files that 'gattherd config set' writes. A section goes with its last key, and so does a file. The
            daemon reloads, and the command shows what needs a restart.

            It changes no other file and removes no comment and no list: if the section is in another file, or its own
            file has more than single values, it fails and names the line.
            """,
        exits: [
            .data: "a key is not set",
            .cannotCreate: "the key must be removed by hand from another file, or a file cannot be written",
            .unavailable: "the key is removed, but the daemon hangs or refuses this user",
            .temporary: "the key is removed, but the daemon reads its files later: a file system or a profile hangs",
            .configuration: "the configuration is wrong without the keys",
        ],
        examples: ["sudo gattherd config unset mqtt.version", "sudo gattherd config unset http gateway --yes"],
        run: { (arguments) throws(CommandFailure) in try ConfigSetCommand(arguments, isRemoval: true).run() }
    )
}

/// Sets or removes keys in the files of their sections.
struct ConfigSetCommand {
    private struct Change {
        /// The file, with its new content.
        let source: ConfigSource
        /// The content from which the new one was made; `nil` for a new file.
        let before: [UInt8]?
        /// True if the new content has no keys, so that the file is deleted.
        let isDeletion: Bool
    }

    private let arguments: Arguments
    private let isRemoval: Bool
    private let file: ConfigurationFile
    private let settings: [KeySetting]
    private let prompt: Prompt

    init(_ arguments: Arguments, isRemoval: Bool = false) throws(CommandFailure) {
        (self.arguments, self.isRemoval) = (arguments, isRemoval)
        file = ConfigurationFile(arguments)
        prompt = Prompt(isSilent: arguments.has("yes"))
        var settings: [KeySetting] = []
        for word in arguments.positionals {
            do throws(KeySetting.Mistake) {
                settings.append(try isRemoval ? KeySetting(removing: word) : KeySetting(word))
            } catch {
                throw arguments.misuse(error.reason)
            }
        }
        self.settings = settings
    }

    func run() throws(CommandFailure) {
        // A running daemon is at the socket of the old configuration, also when history.path changes.
        let client = DaemonClient(file.parsedLeniently().configuration)
        var changes: [Change] = []
        for (section, own) in Dictionary(grouping: settings, by: \.section).sorted(by: { $0.key < $1.key }) {
            changes.append(try change(section, own))
        }
        _ = try file.checked(with: changes.map(\.source))
        for change in changes where !change.isDeletion {
            Terminal.printError(String(decoding: change.source.bytes, as: UTF8.self))
        }
        guard try prompt.confirms(Self.question(changes)) else {
            throw CommandFailure(.general, "gattherd: nothing was changed")
        }
        for change in changes { try write(change) }
        guard try client.isDaemonThere() else { return Terminal.say(DaemonClient.startAdvice) }
        try client.reload()
    }

    /// Returns the question before changes, for example `Write this to a.yaml, and delete b.yaml?`.
    private static func question(_ changes: [Change]) -> String {
        let written = changes.filter { !$0.isDeletion }.map(\.source.name).joined(separator: " and ")
        let deleted = changes.filter(\.isDeletion).map(\.source.name).joined(separator: " and ")
        guard !deleted.isEmpty else { return "Write this to \(written)?" }
        return written.isEmpty ? "Delete \(deleted)?" : "Write this to \(written), and delete \(deleted)?"
    }

    private func write(_ change: Change) throws(CommandFailure) {
        let name = change.source.name
        do throws(GatewayError) {
            if change.isDeletion, let before = change.before {
                try file.delete(name, with: before)
            } else {
                try file.set(change.source, replacing: change.before)
            }
        } catch {
            throw CommandFailure(.cannotCreate, "gattherd: \(error.message)")
        }
        Terminal.say(change.isDeletion ? "deleted \(name)" : "wrote \(name)")
    }

    /// Returns the change of a section's file.
    private func change(_ section: String, _ settings: [KeySetting]) throws(CommandFailure) -> Change {
        try refuseList(section)
        let path = file.fragment(named: section)
        try refuseSection(section, outside: path)
        let before = try content(path)
        var text: SectionFile
        do throws(SectionFile.Obstacle) {
            text = try SectionFile(before ?? [], of: section)
        } catch {
            throw Self.handwork(path, error.line, error.reason)
        }
        let names = text.names
        for setting in settings {
            guard text.apply(setting) else { throw Self.missing(setting, in: path, names) }
        }
        let source = ConfigSource(name: path, text: text.text)
        return Change(source: source, before: before, isDeletion: text.names.isEmpty)
    }

    /// Returns the error about a key that is to be removed and not set.
    private static func missing(_ setting: KeySetting, in path: String, _ names: [String]) -> CommandFailure {
        let key = setting.path.joined(separator: ".")
        let list = names.joined(separator: ", ")
        let remedy =
            names.isEmpty
            ? "no file has '\(setting.section)'; docs/configuration.md has all keys and their defaults"
            : "\(path) has \(list); name one of them"
        return CommandFailure(.data, "gattherd: '\(key)' is not set: \(Terminal.harmless(remedy))")
    }

    /// Returns the bytes of a file; `nil` if it is missing.
    private func content(_ path: String) throws(CommandFailure) -> [UInt8]? {
        do throws(SystemError) {
            return try readFile(path, limit: Self.largest)
        } catch {
            guard error.code != ENOENT else { return nil }
            throw CommandFailure(.cannotCreate, "gattherd: \(path) cannot be read: \(error)")
        }
    }

    /// The maximum number of bytes of a file.
    private static let largest = 4 << 20

    private func refuseList(_ section: String) throws(CommandFailure) {
        let forms = ConfigReference.installed.entries.first { $0.name == section }?.key.forms ?? []
        let isList = forms.contains { if case .section(_, .list) = $0 { true } else { false } }
        guard isList else { return }
        throw arguments.misuse("'\(section)' is a list; \(listAdvice(section))")
    }

    private func listAdvice(_ section: String) -> String {
        guard !isRemoval else { return "remove entries by hand, then run: gattherd reload" }
        return section == "devices"
            ? "gattherd add ADDRESS adds a device"
            : "write it into \(file.fragment(named: section)), then run: gattherd reload"
    }

    /// Refuses a section of another file: a section in two files is hard to read, and would need the keys of both.
    private func refuseSection(_ section: String, outside path: String) throws(CommandFailure) {
        for other in file.paths where other != path {
            guard let bytes = try? readFile(other, limit: Self.largest), let root = try? YAML.parse(bytes),
                let member = root.members?.first(where: { $0.name == section }), !member.value.isNull
            else { continue }
            throw Self.handwork(other, member.key.position.line, "'\(section)' is set in this file")
        }
    }

    private static func handwork(_ path: String, _ line: Int, _ reason: String) -> CommandFailure {
        let advice = "change this file by hand, then run: gattherd reload"
        // Names of files and keys may have control characters.
        let place = Terminal.harmless("\(path):\(line): \(reason)")
        return CommandFailure(.cannotCreate, "gattherd: \(place); \(advice)")
    }
}
