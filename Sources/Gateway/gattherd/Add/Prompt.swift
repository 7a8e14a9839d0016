import Glibc

/// Questions to a person at the terminal.
struct Prompt {
    /// False if nobody can be asked.
    let isInteractive: Bool

    /// - Parameter isSilent: True to ask nothing.
    init(isSilent: Bool) {
        isInteractive = !isSilent && isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1
    }

    /// Returns the entered text, or `standard` for an empty line or without a person.
    ///
    /// - Throws: ``CommandFailure`` at the end of the input.
    func text(_ question: String, standard: String) throws(CommandFailure) -> String {
        guard isInteractive else { return standard }
        let answer = try line("\(question) [\(standard)]: ")
        return answer.isEmpty ? standard : answer
    }

    /// Returns true unless the person says no.
    func confirms(_ question: String) throws(CommandFailure) -> Bool {
        guard isInteractive else { return true }
        return !["n", "no"].contains(try line("\(question) [Y/n]: ").lowercased())
    }

    /// Returns the index of the chosen line; `nil` without a person.
    func choice(_ title: String, of lines: [String]) throws(CommandFailure) -> Int? {
        guard isInteractive else { return nil }
        for (index, line) in lines.enumerated() { Terminal.printError("  \(index + 1)  \(Terminal.harmless(line))") }
        while true {
            let answer = try line("\(title) (1 to \(lines.count)): ")
            if let number = Int(answer), (1...lines.count).contains(number) { return number - 1 }
        }
    }

    private func line(_ question: String) throws(CommandFailure) -> String {
        Terminal.write(Terminal.harmless(question), to: STDERR_FILENO)
        guard let answer = readLine() else { throw CommandFailure(.general, "\ngattherd: nothing was changed") }
        var text = Substring(answer)
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
