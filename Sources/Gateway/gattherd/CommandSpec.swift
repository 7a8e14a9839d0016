import GattherdGateway

/// The specification of a command: name, help and action.
struct CommandSpec: Sendable {
    /// The command's name: one or two words, for example `profile list`.
    let name: String
    let summary: String
    var positionals: [PositionalSpec] = []
    var options: [OptionSpec] = []
    /// Further paragraphs of help.
    var details = ""
    /// The keys of its JSON output, for the help.
    var json = ""
    /// Further exit codes and their causes.
    var exits: [CommandFailure.Code: String] = [:]
    var examples: [String] = []
    let run: @Sendable (Arguments) async throws(CommandFailure) -> Void

    var optionNames: [String] { options.map(\.name) }

    /// The usage line: `gattherd NAME ARGUMENTS [options]`.
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
    /// Returns the text padded with spaces on the right to `width` characters.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }

    /// Returns the text, or as much of it as has `width` characters with an ellipsis.
    func shortened(to width: Int) -> String {
        count <= width ? self : prefix(max(0, width - 1)) + "…"
    }

    /// Returns the text padded with spaces on the left to `width` characters.
    func leftPadded(to width: Int) -> String {
        String(repeating: " ", count: max(0, width - count)) + self
    }
}

/// The failure of a command: an exit code of sysexits.h and a message for standard error.
struct CommandFailure: Error {
    enum Code: Int32 {
        case general = 1
        case usage = 64
        case data = 65
        case noInput = 66
        case unavailable = 69
        case software = 70
        case cannotCreate = 73
        case inputOutput = 74
        /// A temporary failure, or a restart that was requested.
        case temporary = 75
        case configuration = 78
    }

    let code: Code
    /// The message, printed as it is; `nil` if everything is already printed.
    let message: String?

    init(_ code: Code, _ message: String?) {
        self.code = code
        self.message = message
    }

    init(_ error: GatewayError) {
        switch error.kind {
        case .unread, .noThread: self.init(.temporary, error.message)
        case .configuration: self.init(.configuration, error.message)
        case .cannotCreate: self.init(.cannotCreate, error.message)
        case .inputOutput: self.init(.inputOutput, error.message)
        }
    }
}
