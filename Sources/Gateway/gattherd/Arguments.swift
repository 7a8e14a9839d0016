import GattherdConfig
import GattherdYAML

/// One option of a command: `--name VALUE`, or `--name` for a flag.
struct OptionSpec: Sendable {
    let name: String
    /// The placeholder of its value in the help; `nil` for a flag.
    let value: String?
    let help: String
    /// All possible values; empty if any value is possible.
    var choices: [String] = []

    static func flag(_ name: String, _ help: String) -> Self { Self(name: name, value: nil, help: help) }

    static func value(_ name: String, _ value: String, _ help: String, choices: [String] = []) -> Self {
        Self(name: name, value: value, help: help, choices: choices)
    }
}

/// A positional argument of a command.
struct PositionalSpec: Sendable {
    let name: String
    var isOptional = false
    /// True if it consumes all remaining words; only possible for the last positional.
    var isRepeated = false
    /// All possible values; empty if any value is possible.
    var choices: [String] = []
}

/// The parsed words after a command's name.
struct Arguments: Sendable {
    private(set) var positionals: [String] = []
    private var values: [String: String] = [:]
    private var flags: Set<String> = []
    private let command: String
    private let usage: String

    /// Sorts words into options and positionals; `--` ends the options, a negative number is a positional.
    ///
    /// - Throws: ``CommandFailure`` with the unknown word and a suggestion.
    init(_ words: [String], for command: CommandSpec) throws(CommandFailure) {
        self.command = command.name
        usage = command.usage
        var rest = words[...]
        var areOptionsOver = false
        while let word = rest.popFirst() {
            if areOptionsOver || !word.hasPrefix("-") || word == "-" || Double(word) != nil {
                positionals.append(word)
            } else if word == "--" {
                areOptionsOver = true
            } else {
                try readOption(word, &rest, command)
            }
        }
        try checkCount(command)
    }

    func has(_ flag: String) -> Bool { flags.contains(flag) }
    func value(_ option: String) -> String? { values[option] }

    /// Returns the positional at `index`; `nil` only if the command declares it optional.
    func positional(_ index: Int) -> String? { positionals.indices.contains(index) ? positionals[index] : nil }

    /// Returns the number of an option; `nil` without the option.
    func number(_ option: String, in range: ClosedRange<Int> = 1...Int.max) throws(CommandFailure) -> Int? {
        guard let text = value(option) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            let end = range.upperBound == .max ? "" : " to \(range.upperBound)"
            throw misuse("--\(option) is a number from \(range.lowerBound)\(end)")
        }
        return number
    }

    /// Returns the seconds of an option, at most a year; `nil` without the option.
    ///
    /// The sum of the clock's time and a longer duration may overflow.
    func seconds(_ option: String) throws(CommandFailure) -> Int? { try number(option, in: 1...31_536_000) }

    /// Returns a usage error.
    func misuse(_ problem: String) -> CommandFailure {
        CommandFailure(.usage, "gattherd \(command): \(problem)\nUsage: \(usage)")
    }

    private mutating func readOption(
        _ word: String,
        _ rest: inout ArraySlice<String>,
        _ command: CommandSpec
    ) throws(CommandFailure) {
        let parts = word.drop { $0 == "-" }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts.first.map { String($0) } ?? ""
        guard let option = command.options.first(where: { $0.name == name }) else {
            throw command.misuse("there is no option '\(word)'", Spelling.nearest(to: name, among: command.optionNames))
        }
        if option.value == nil {
            guard parts.count == 1 else { throw command.misuse("--\(name) takes no value") }
            flags.insert(name)
        } else if parts.count == 2 {
            values[name] = String(parts[1])
        } else if let value = rest.popFirst() {
            values[name] = value
        } else {
            throw command.misuse("--\(name) needs \(option.value ?? "a value")")
        }
    }

    private func checkCount(_ command: CommandSpec) throws(CommandFailure) {
        let needed = command.positionals.filter { !$0.isOptional }
        if positionals.count < needed.count {
            throw command.misuse("\(needed[positionals.count].name) is missing")
        }
        if command.positionals.last?.isRepeated != true, positionals.count > command.positionals.count {
            throw command.misuse("unexpected argument '\(positionals[command.positionals.count])'")
        }
    }
}
