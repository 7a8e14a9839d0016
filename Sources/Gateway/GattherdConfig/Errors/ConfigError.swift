/// One thing wrong with a configuration, and where.
public struct ConfigError: Error, Hashable, Sendable {
    public enum Severity: String, Hashable, Sendable {
        case error
        case warning
    }

    public let problem: ConfigProblem
    public let severity: Severity
    /// The file's name.
    public let file: String
    /// Where in the file; `nil` when it is about the file as a whole.
    public let place: ConfigPlace?

    /// Something wrong at a place.
    public init(_ problem: ConfigProblem, at place: ConfigPlace, severity: Severity = .error) {
        self.problem = problem
        self.severity = severity
        self.place = place
        file = place.file
    }

    /// Something wrong with a whole file.
    public init(_ problem: ConfigProblem, file: String, severity: Severity = .error) {
        self.problem = problem
        self.severity = severity
        self.file = file
        place = nil
    }
}

extension ConfigError: CustomStringConvertible {
    /// As compilers print it: position and problem, the line, a caret.
    public var description: String {
        guard let place else { return "\(file): \(severity.rawValue): \(problem)" }
        let gutter = String(repeating: " ", count: "\(place.line)".count)
        let indent = String(repeating: " ", count: place.column - 1)
        let caret = "^" + String(repeating: "~", count: place.width - 1)
        return """
            \(place): \(severity.rawValue): \(problem)
            \(place.line) | \(place.excerpt)
            \(gutter) | \(indent)\(caret)
            """
    }
}

/// Why there is no configuration: everything that is wrong with its files, in their order.
public struct ConfigErrors: Error, Hashable, Sendable, CustomStringConvertible {
    public let errors: [ConfigError]

    public init(_ errors: [ConfigError]) {
        self.errors = errors
    }

    public var description: String { errors.map(\.description).joined(separator: "\n") }
}
