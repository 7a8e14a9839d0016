import GattherdYAML

/// One mistake in a configuration, with its place.
package struct ConfigError: Error, Hashable, Sendable {
    package enum Severity: String, Hashable, Sendable {
        case error
        case warning
    }

    package let problem: ConfigProblem
    package let severity: Severity
    /// The file's name.
    package let file: String
    /// The place in the file; `nil` for an error about the file as a whole.
    package let place: ConfigPlace?

    /// Creates an error at a place.
    package init(_ problem: ConfigProblem, at place: ConfigPlace, severity: Severity = .error) {
        self.problem = problem
        self.severity = severity
        self.place = place
        file = place.file
    }

    /// Creates an error about a whole file.
    package init(_ problem: ConfigProblem, file: String, severity: Severity = .error) {
        self.problem = problem
        self.severity = severity
        self.file = file
        place = nil
    }
}

extension ConfigError: CustomStringConvertible {
    /// The position and the problem, without the line of the file: it may have a secret.
    package var headline: String {
        let position = place.map { "\($0)" } ?? file
        return "\(position): \(severity.rawValue): \(problem)"
    }

    /// The format of compilers: position and problem, the line, a caret.
    ///
    /// The line is for the person who wrote it. Logs and events have the ``headline``.
    package var description: String {
        guard let place, !problem.isSecret else { return headline }
        let gutter = String(repeating: " ", count: "\(place.line)".count)
        let excerpt = place.excerpt
        let indent = String(repeating: " ", count: excerpt.column - 1)
        let caret = "^" + String(repeating: "~", count: excerpt.width - 1)
        return """
            \(headline)
            \(place.line) | \(excerpt.text)
            \(gutter) | \(indent)\(caret)
            """
    }
}

/// All errors of a configuration's files, in their order.
package struct ConfigErrors: Error, Hashable, Sendable, CustomStringConvertible {
    package let errors: [ConfigError]

    package init(_ errors: [ConfigError]) {
        self.errors = errors
    }

    package var description: String { errors.map(\.description).joined(separator: "\n") }

    /// The maximum number of mistakes in a ``summary``.
    private static let longestSummary = 20

    /// The first mistakes, each in a line, for logs and events: without the lines of the files, which may have secrets.
    package var summary: String {
        let lines = errors.prefix(Self.longestSummary).map(\.headline)
        let omitted = errors.count - lines.count
        return (lines + (omitted > 0 ? ["and \(omitted) more mistakes"] : [])).joined(separator: "\n")
    }
}

/// A YAML value and its file.
struct FileNode {
    let node: YAMLNode
    let file: ConfigFile

    var place: ConfigPlace { ConfigPlace(node, in: file) }
}

/// The errors found so far while a configuration is read.
final class ConfigFindings {
    /// The maximum number of errors; a generated file may repeat a mistake in each of its values.
    private static let maximum = 1000

    private let order: [String]
    private var all: [ConfigError] = []
    /// The number of errors above the maximum.
    private var omitted = 0

    /// - Parameter files: The files' names in the order in which they are read.
    init(files: [String]) {
        order = files
    }

    /// True if further errors are only counted.
    var isFull: Bool { all.count >= Self.maximum }

    func report(_ problem: ConfigProblem, at place: ConfigPlace) {
        guard !isFull else { return omitted += 1 }
        all.append(ConfigError(problem, at: place))
    }

    /// The reported errors, in the order of the text.
    var sorted: [ConfigError] {
        let ranks = Dictionary(zip(order, order.indices)) { first, _ in first }
        let sorted =
            all
            .map { (rank: (ranks[$0.file] ?? 0, $0.place?.line ?? 0, $0.place?.column ?? 0), error: $0) }
            .sorted { $0.rank < $1.rank }
            .map(\.error)
        guard omitted > 0, let file = order.first else { return sorted }
        let advice = "\(omitted) more mistakes are left out; correct these first"
        return sorted + [ConfigError(.conflict(advice), file: file)]
    }
}
