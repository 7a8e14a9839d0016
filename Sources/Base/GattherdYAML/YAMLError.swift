/// A syntax error with its position.
public struct YAMLError: Error, Hashable, Sendable {
    public let position: YAMLPosition
    /// The problem and its remedy, as text for users.
    public let problem: String

    public init(position: YAMLPosition, problem: String) {
        self.position = position
        self.problem = problem
    }
}

extension YAMLError: CustomStringConvertible {
    /// The error in the form `line:column: problem`.
    public var description: String { "\(position): \(problem)" }
}
