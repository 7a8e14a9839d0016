/// Why a text is not YAML that we read, and where.
public struct YAMLError: Error, Hashable, Sendable {
    public let position: YAMLPosition
    /// What is wrong and what to do, for people.
    public let problem: String

    public init(position: YAMLPosition, problem: String) {
        self.position = position
        self.problem = problem
    }
}

extension YAMLError: CustomStringConvertible {
    /// `line:column: problem`.
    public var description: String { "\(position): \(problem)" }
}
