/// One command: how it is called, what its help says, and what it does.
struct CommandSpec: Sendable {
    /// One or two words, for example `profile list`.
    let name: String
    let summary: String
    var positionals: [PositionalSpec] = []
    var options: [OptionSpec] = []
    /// Further paragraphs of help.
    var details = ""
    var examples: [String] = []
    let run: @Sendable (Arguments) async throws(Failure) -> Void

    var optionNames: [String] { options.map(\.name) }

    /// `gattherd NAME ARGUMENTS [options]`.
    var usage: String {
        let arguments = positionals.map { positional in
            let name = positional.name + (positional.isRepeated ? "…" : "")
            return positional.isOptional ? "[\(name)]" : name
        }
        return (["gattherd \(name)"] + arguments + (options.isEmpty ? [] : ["[options]"])).joined(separator: " ")
    }

    var help: String {
        var text = "\(summary)\n\nUsage: \(usage)\n"
        if !details.isEmpty { text += "\n\(details)\n" }
        if !options.isEmpty {
            let rows = options.map { option in
                (["--\(option.name)"] + [option.value].compactMap { $0 }).joined(separator: " ")
            }
            let width = rows.map(\.count).max() ?? 0
            text += "\nOptions:\n"
            for (row, option) in zip(rows, options) { text += "  \(row.padded(to: width))  \(option.help)\n" }
        }
        if !examples.isEmpty { text += "\nExamples:\n" + examples.map { "  \($0)\n" }.joined() }
        return text
    }

    func misuse(_ problem: String, _ suggestion: String? = nil) -> Failure {
        let question = suggestion.map { "; did you mean --\($0)?" } ?? ""
        return Failure(.usage, "gattherd \(name): \(problem)\(question)\nUsage: \(usage)")
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
