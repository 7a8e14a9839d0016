import GattherdConfig
import GattherdGateway
import GattherdModel
import GattherdProfiles

/// The candidates for the word that is being typed.
struct Completion {
    /// One candidate.
    struct Candidate: Hashable {
        let word: String
        var help = ""

        /// The shell completes files itself.
        static let files = Candidate(word: ":files")

        /// The word, a tab and its description.
        var line: String { help.isEmpty ? word : word + "\t" + help }
    }

    private let commands: [CommandSpec]
    /// The words before the last one.
    private let words: [String]
    private let prefix: String

    /// - Parameters:
    ///   - words: All words after the program's name; the last one is incomplete and may be empty.
    ///   - commands: All commands.
    init(of words: [String], among commands: [CommandSpec]) {
        self.commands = commands
        // Bash splits `--name=value`.
        var words = words
        if words.last == "=" { words.append("") }
        self.words = words.dropLast().filter { $0 != "=" }
        prefix = words.last ?? ""
    }

    var candidates: [Candidate] {
        for count in [2, 1] where words.count >= count {
            let name = words.prefix(count).joined(separator: " ")
            guard let command = commands.first(where: { $0.name == name }) else { continue }
            return matching(arguments(of: command, Array(words.dropFirst(count))))
        }
        guard let first = words.first else {
            return matching(prefix.hasPrefix("-") ? Self.programOptions : names(after: []) + [Self.help])
        }
        return matching(names(after: first == Self.help.word ? words.dropFirst() : words[...]))
    }

    private func matching(_ candidates: [Candidate]) -> [Candidate] {
        candidates.filter { $0 == .files || $0.word.hasPrefix(prefix) }
    }

    // MARK: - Names

    /// The word before the name of a command that is to be explained.
    private static let help = Candidate(word: "help", help: "explain a command")

    /// The options of the program without a command.
    private static let programOptions = [
        Candidate(word: "--help", help: "list all commands"), Candidate(word: "--version", help: "print the version"),
    ]

    /// Returns the first words of commands, or the second words of a family.
    private func names(after words: ArraySlice<String>) -> [Candidate] {
        guard words.count <= 1 else { return [] }
        let family = words.first.map { $0 + " " } ?? ""
        var seen: Set<String> = []
        return commands.filter { $0.name.hasPrefix(family) }.compactMap { command in
            let rest = command.name.dropFirst(family.count)
            let word = String(rest.prefix { $0 != " " })
            guard seen.insert(word).inserted else { return nil }
            return Candidate(word: word, help: word.count == rest.count ? command.summary : members(of: word))
        }
    }

    /// Returns the second words of a family of commands.
    private func members(of word: String) -> String {
        commands.filter { $0.name.hasPrefix(word + " ") }.map { $0.name.dropFirst(word.count + 1) }
            .joined(separator: ", ")
    }

    // MARK: - Arguments

    private func arguments(of command: CommandSpec, _ words: [String]) -> [Candidate] {
        if let option = command.option(words.last), option.value != nil { return values(of: option) }
        if prefix.hasPrefix("-"), let equals = prefix.firstIndex(of: "=") {
            let start = prefix[...equals]
            guard let option = command.option(String(prefix[..<equals])) else { return [] }
            return values(of: option).map { $0 == .files ? $0 : Candidate(word: start + $0.word, help: $0.help) }
        }
        let options = options(of: command, without: words)
        if prefix.hasPrefix("-") { return options }
        let positional = positional(of: command, words).map(values) ?? []
        return positional.isEmpty ? options : positional
    }

    private func options(of command: CommandSpec, without words: [String]) -> [Candidate] {
        let all = command.options.map { Candidate(word: "--" + $0.name, help: $0.help) }
        return (all + [Candidate(word: "--help", help: "explain the command")]).filter { !words.contains($0.word) }
    }

    /// Returns the index of the positional that the word would be.
    private func positional(of command: CommandSpec, _ words: [String]) -> PositionalSpec? {
        var count = 0
        var isValue = false
        for word in words {
            let option = command.option(word)
            if !isValue, !word.hasPrefix("-") { count += 1 }
            isValue = option?.value != nil && !word.contains("=")
        }
        return command.positionals.indices.contains(count) ? command.positionals[count] : nil
    }

    private func values(of option: OptionSpec) -> [Candidate] {
        values(option.choices, named: option.name == "device" ? "DEVICE" : option.value ?? "")
    }

    private func values(of positional: PositionalSpec) -> [Candidate] {
        values(positional.choices, named: positional.name)
    }

    /// Returns the candidates for a placeholder of the help, for example DEVICE or `DEVICE|ADDRESS`.
    private func values(_ choices: [String], named name: String) -> [Candidate] {
        guard choices.isEmpty else { return choices.map { Candidate(word: $0) } }
        return name.split(separator: "|").flatMap { candidates(for: String($0)) ?? [] }
    }

    /// Returns the candidates for an alternative of a placeholder; `nil` for a text that only the user knows.
    ///
    /// A word in lower case, for example `all`, stands for itself.
    func candidates(for alternative: String) -> [Candidate]? {
        switch alternative {
        case "FILE", "PATH", "DIR", "FOLDER", "SCENARIO": [.files]
        case "DEVICE":
            configuration?.devices.map { Candidate(word: $0.name.value, help: "\($0.address.value)") } ?? []
        case "PROFILE": profiles
        default: alternative == alternative.lowercased() ? [Candidate(word: alternative)] : nil
        }
    }

    // MARK: - Configuration

    /// Returns the configuration that `--config` names, else the standard one.
    private var configuration: Configuration? {
        let path = zip(words, words.dropFirst()).first { $0.0 == "--config" }?.1
        let joined = words.first { $0.hasPrefix("--config=") }?.dropFirst("--config=".count)
        return try? ConfigurationFile(path ?? joined.map { String($0) }).parsed().recallingEnrolled()
    }

    private var profiles: [Candidate] {
        let registry = (try? configuration?.loadProfiles()) ?? InstalledProfiles.load()
        return registry.profiles.map { Candidate(word: $0.name, help: $0.title) }
    }
}

extension CommandSpec {
    /// Returns the option of a word, without its value.
    fileprivate func option(_ word: String?) -> OptionSpec? {
        guard let word, word.hasPrefix("--") else { return nil }
        return options.first { "--" + $0.name == word }
    }
}
