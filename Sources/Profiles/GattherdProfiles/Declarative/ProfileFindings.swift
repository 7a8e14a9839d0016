import GattherdYAML

/// An error in a declarative profile, with its position.
struct ProfileFinding: Hashable {
    let position: YAMLPosition
    /// The message: the error, the expectation and a suggestion.
    let reason: String
}

/// The errors found in a declarative profile so far.
final class ProfileFindings {
    private var all: [ProfileFinding] = []

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }

    /// The errors in the order of the text.
    var sorted: [ProfileFinding] { all.sorted { $0.position < $1.position } }

    func report(_ reason: String, at position: YAMLPosition) {
        all.append(ProfileFinding(position: position, reason: reason))
    }
}
