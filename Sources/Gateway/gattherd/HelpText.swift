/// The help of a command: purpose, arguments, output and exit codes.
struct HelpText {
    private let command: CommandSpec
    private let width: Int

    init(_ command: CommandSpec, width: Int) {
        self.command = command
        self.width = max(40, width)
    }

    var text: String {
        var sections = ["\(command.summary)\n", "Usage: \(command.usage)\n"]
        if !command.details.isEmpty { sections.append(prose(command.details)) }
        let options = command.options.map { option in
            ((["--\(option.name)"] + [option.value].compactMap { $0 }).joined(separator: " "), option.help)
        }
        sections.append("Options:\n" + rows(options + [("--help", "print this and end")]))
        if !command.json.isEmpty { sections.append("JSON:\n" + prose(command.json, indent: 2)) }
        sections.append("Exit codes:\n" + rows(exits))
        if !command.examples.isEmpty {
            sections.append("Examples:\n" + command.examples.map { "  \($0)\n" }.joined())
        }
        return sections.joined(separator: "\n")
    }

    private var exits: [(String, String)] {
        var exits = [Int32(0): "done", CommandFailure.Code.usage.rawValue: "the command line is wrong"]
        if command.options.contains(where: { $0.name == "config" }) {
            exits[CommandFailure.Code.configuration.rawValue] = "the configuration is wrong"
        }
        for (code, words) in command.exits { exits[code.rawValue] = words }
        return exits.sorted { $0.key < $1.key }.map { ("\($0.key)", $0.value) }
    }

    /// Returns two columns; the second one is wrapped.
    private func rows(_ rows: [(String, String)]) -> String {
        let column = rows.map(\.0.count).max() ?? 0
        return rows.map { name, help in
            let lines = Self.wrapped(help, width - column - 4)
            let indent = "\n" + String(repeating: " ", count: column + 4)
            return "  \(name.padded(to: column))  " + lines.joined(separator: indent) + "\n"
        }.joined()
    }

    /// Returns wrapped paragraphs; indented lines stay as they are.
    private func prose(_ text: String, indent: Int = 0) -> String {
        let margin = String(repeating: " ", count: indent)
        var lines: [String] = []
        var paragraph = ""
        func finish() {
            lines += Self.wrapped(paragraph, width - indent)
            paragraph = ""
        }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if !line.isEmpty, line.first != " " {
                paragraph += paragraph.isEmpty ? line : " " + line
            } else {
                finish()
                lines.append(String(line))
            }
        }
        finish()
        return lines.map { $0.isEmpty ? "\n" : margin + $0 + "\n" }.joined()
    }

    private static func wrapped(_ text: String, _ width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + word.count >= width {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? word : " " + word
        }
        return line.isEmpty ? lines : lines + [line]
    }
}
