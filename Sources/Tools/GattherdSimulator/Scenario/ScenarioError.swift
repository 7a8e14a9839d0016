public import GattherdYAML

/// Everything that is wrong with a scenario.
public struct ScenarioError: Error, Hashable, Sendable, CustomStringConvertible {
    public struct Problem: Hashable, Sendable, CustomStringConvertible {
        public let file: String
        public let position: YAMLPosition
        public let text: String

        /// As compilers write it: `file:line:column: error: text`.
        public var description: String { "\(file):\(position): error: \(text)" }
    }

    /// In the order of the text.
    public let problems: [Problem]

    public var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Gathers what is wrong while a scenario is read; for one reading, on one thread.
final class ProblemList {
    private let file: String
    private var problems: [ScenarioError.Problem] = []

    init(file: String) {
        self.file = file
    }

    /// The folder of the file, with a slash at its end; empty for the one that we are in.
    var folder: String { file.lastIndex(of: "/").map { String(file[...$0]) } ?? "" }

    func add(_ text: String, at position: YAMLPosition) {
        problems.append(ScenarioError.Problem(file: file, position: position, text: text))
    }

    /// Everything that was added, if anything was.
    var error: ScenarioError? {
        problems.isEmpty ? nil : ScenarioError(problems: problems.sorted { $0.position < $1.position })
    }
}
