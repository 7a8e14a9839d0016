/// One command: how it is called, what its help says, and what it does.
struct CommandSpec: Sendable {
    /// One or two words, for example `profile list`.
    let name: String
    let summary: String
    var positionals: [PositionalSpec] = []
    var options: [OptionSpec] = []
    /// Further paragraphs of help.
    var details = ""
    /// What it prints as JSON: its keys, and what may be left out.
    var json = ""
    /// Exit codes besides those that every command has, and when it ends with them.
    var exits: [CommandFailure.Code: String] = [:]
    var examples: [String] = []
    let run: @Sendable (Arguments) async throws(CommandFailure) -> Void

    var optionNames: [String] { options.map(\.name) }

    /// `gattherd NAME ARGUMENTS [options]`.
    var usage: String {
        let arguments = positionals.map { positional in
            let name = positional.name + (positional.isRepeated ? "…" : "")
            return positional.isOptional ? "[\(name)]" : name
        }
        return (["gattherd \(name)"] + arguments + (options.isEmpty ? [] : ["[options]"])).joined(separator: " ")
    }

    func misuse(_ problem: String, _ suggestion: String? = nil) -> CommandFailure {
        let question = suggestion.map { "; did you mean --\($0)?" } ?? ""
        return CommandFailure(.usage, "gattherd \(name): \(problem)\(question)\nUsage: \(usage)")
    }
}

extension String {
    /// The text with spaces after it, up to `width` characters.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }

    /// The text with spaces before it, up to `width` characters.
    func leftPadded(to width: Int) -> String {
        String(repeating: " ", count: max(0, width - count)) + self
    }
}
