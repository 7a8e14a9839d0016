public import GattherdYAML

/// All problems of a scenario.
public struct ScenarioError: Error, Hashable, Sendable, CustomStringConvertible {
    public struct Problem: Hashable, Sendable, CustomStringConvertible {
        public let file: String
        public let position: YAMLPosition
        public let text: String

        /// The problem in the format of compilers: `file:line:column: error: text`.
        public var description: String { "\(file):\(position): error: \(text)" }
    }

    /// The problems in the order of the text.
    public let problems: [Problem]

    public var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Collects the problems of one scenario.
///
/// Confined to one thread.
final class ProblemList {
    private let file: String
    private var problems: [ScenarioError.Problem] = []

    init(file: String) {
        self.file = file
    }

    /// The folder of the file with a trailing slash; empty for the current folder.
    var folder: String { file.lastIndex(of: "/").map { String(file[...$0]) } ?? "" }

    func add(_ text: String, at position: YAMLPosition) {
        problems.append(ScenarioError.Problem(file: file, position: position, text: text))
    }

    /// The collected problems; `nil` if there are none.
    var error: ScenarioError? {
        problems.isEmpty ? nil : ScenarioError(problems: problems.sorted { $0.position < $1.position })
    }
}
