import CLinux
import GattherdSync
import Glibc

/// Standard output for results, standard error for everything else.
enum Terminal {
    /// Writes lines to standard output; a terminal gets no control characters.
    static func say(_ text: String) {
        let lines = text.hasSuffix("\n") ? text : text + "\n"
        write(isatty(STDOUT_FILENO) == 1 ? harmlessLines(lines) : lines, to: STDOUT_FILENO)
    }

    /// Writes a line with colour codes, whose text is already harmless.
    static func show(_ line: String) {
        write(line + "\n", to: STDOUT_FILENO)
    }

    /// Writes lines to standard error; a terminal gets no control characters.
    static func printError(_ text: String) {
        let lines = text.hasSuffix("\n") ? text : text + "\n"
        write(isatty(STDERR_FILENO) == 1 ? harmlessLines(lines) : lines, to: STDERR_FILENO)
    }

    /// The time in which a reader of standard error reads a line.
    private static let briefLimit = Duration.seconds(1)

    /// Writes a line to standard error; gives up after ``briefLimit`` if the pipe is full.
    static func printErrorBriefly(_ text: String) async {
        await wait(atMost: briefLimit) { _ = await NamedThread.result(name: "console") { printError(text) } }
    }

    /// Writes all of `text`; ends the program if standard output fails.
    static func write(_ text: String, to descriptor: Int32) {
        write(Array(text.utf8), to: descriptor)
    }

    /// Writes all of `bytes`; ends the program if standard output fails.
    ///
    /// Without standard error, the exit code still shows the result of the command.
    static func write(_ bytes: [UInt8], to descriptor: Int32) {
        guard !writeAll(bytes, to: descriptor), descriptor == STDOUT_FILENO else { return }
        exit(CommandFailure.Code.inputOutput.rawValue)
    }

    /// Opens the standard descriptors that the caller has closed.
    ///
    /// Otherwise the next opened file would get the free number, and messages would be written into it. Writing to the
    /// opened ones fails.
    static func openStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            _ = unsafe open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// The columns of the terminal, at most 100; 80 without a terminal.
    static var width: Int {
        let columns = Int(clinux_terminal_size(STDOUT_FILENO).columns)
        return columns > 0 ? min(columns, 100) : 80
    }

    /// Replaces the last line of standard error, if that is a terminal, by the start of `line` that fits in it.
    ///
    /// A longer line would wrap, and the next one would replace its last part only.
    static func replaceLine(_ line: String) {
        let columns = Int(clinux_terminal_size(STDERR_FILENO).columns)
        write("\r\(columns > 0 ? String(line.prefix(columns - 1)) : line)\u{1B}[K", to: STDERR_FILENO)
    }

    /// True if standard output may have colour.
    static var hasColour: Bool {
        isatty(STDOUT_FILENO) == 1 && environment("NO_COLOR") == nil
    }

    /// False if the locale or TERM names a terminal without Unicode.
    static var hasUnicode: Bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].compactMap { environment($0) }.first { !$0.isEmpty }
        let name = locale?.uppercased() ?? "UTF-8"
        return (name.hasSuffix("UTF-8") || name.hasSuffix("UTF8")) && environment("TERM") != "linux"
    }

    /// Returns lines without control characters, except tabs.
    ///
    /// Joiners stay, because emoji need them.
    static func harmlessLines(_ text: String) -> String {
        let scalars = text.unicodeScalars.map { scalar -> Unicode.Scalar in
            let isPlain = ["\n", "\t", "\u{200D}"].contains(scalar) || scalar.properties.isPrintable
            return isPlain ? scalar : "\u{FFFD}"
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// Returns text as one line without control characters.
    static func harmless(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.isPrintable ? $0 : "\u{FFFD}" }))
    }

    /// The path of the current folder.
    static var currentFolder: String {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        return unsafe getcwd(&path, path.count).map { unsafe String(cString: $0) } ?? "."
    }

    static func environment(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}

/// Rows of text in columns, without control characters.
struct TextTable {
    let lines: [String]

    init(_ header: [String], _ rows: [[String]]) {
        let all = ([header] + rows).map { $0.map(Terminal.harmless) }
        let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        lines = all.map { row in
            let cells = zip(row, widths).map { $0.padded(to: $1) }.joined(separator: "  ")
            return String(cells.reversed().drop { $0 == " " }.reversed())
        }
    }
}

extension Unicode.Scalar.Properties {
    fileprivate var isPrintable: Bool {
        switch generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        default: true
        }
    }
}

/// Questions to a person at the terminal.
struct Prompt {
    /// False without a terminal to ask on.
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

    /// Returns true for yes, false for no; asks again after other answers.
    func confirms(_ question: String) throws(CommandFailure) -> Bool {
        guard isInteractive else { return true }
        while true {
            if let isYes = Self.isYes(try line("\(question) [Y/n]: ")) { return isYes }
        }
    }

    /// Returns true for yes and the empty answer, false for no, `nil` for other answers.
    static func isYes(_ answer: String) -> Bool? {
        switch answer.lowercased() {
        case "", "y", "yes": true
        case "n", "no": false
        default: nil
        }
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
