import CLinux
import GattherdSync
import Glibc

/// Standard output for results, standard error for everything else.
enum Terminal {
    /// Writes lines to standard output; on a terminal nothing in them has an effect on it.
    static func say(_ text: String) {
        let lines = text.hasSuffix("\n") ? text : text + "\n"
        write(isatty(STDOUT_FILENO) == 1 ? harmlessLines(lines) : lines, to: STDOUT_FILENO)
    }

    /// Writes a line with colours of our own, in which all else is harmless already.
    static func show(_ line: String) {
        write(line + "\n", to: STDOUT_FILENO)
    }

    /// Writes lines to standard error; on a terminal nothing in them has an effect on it.
    static func complain(_ text: String) {
        let lines = text.hasSuffix("\n") ? text : text + "\n"
        write(isatty(STDERR_FILENO) == 1 ? harmlessLines(lines) : lines, to: STDERR_FILENO)
    }

    /// Writes a line to standard error, if somebody reads it within a second.
    static func complainBriefly(_ text: String) async {
        await wait(atMost: .seconds(1)) { _ = await NamedThread.result(name: "console") { complain(text) } }
    }

    /// Writes all of `text`; a reader that has gone away ends the program, as for any filter.
    static func write(_ text: String, to descriptor: Int32) {
        write(Array(text.utf8), to: descriptor)
    }

    /// Writes all of `octets`, in the same way.
    static func write(_ octets: [UInt8], to descriptor: Int32) {
        guard writeAll(octets, to: descriptor) else {
            exit(descriptor == STDOUT_FILENO ? CommandFailure.Code.inputOutput.rawValue : 0)
        }
    }

    /// The columns of the terminal, but not more than can be read with ease; 80 elsewhere.
    static var width: Int {
        let columns = Int(clinux_terminal_size(STDOUT_FILENO).columns)
        return columns > 0 ? min(columns, 100) : 80
    }

    /// True when colour may be used on standard output.
    static var hasColour: Bool {
        isatty(STDOUT_FILENO) == 1 && environment("NO_COLOR") == nil
    }

    /// False where the terminal is said to know only ASCII; nothing said means nothing known against it.
    static var hasUnicode: Bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].compactMap { environment($0) }.first { !$0.isEmpty }
        let name = locale?.uppercased() ?? "UTF-8"
        return (name.hasSuffix("UTF-8") || name.hasSuffix("UTF8")) && environment("TERM") != "linux"
    }

    /// Lines, with their tabs, that do nothing to a terminal, whoever has chosen the text.
    ///
    /// Joiners stay: pictures of several characters need them.
    static func harmlessLines(_ text: String) -> String {
        let scalars = text.unicodeScalars.map { scalar -> Unicode.Scalar in
            let isPlain = ["\n", "\t", "\u{200D}"].contains(scalar) || scalar.properties.isPrintable
            return isPlain ? scalar : "\u{FFFD}"
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// Text from elsewhere as one line that does nothing to a terminal.
    static func harmless(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.isPrintable ? $0 : "\u{FFFD}" }))
    }

    static func environment(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
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
