import GattherdYAML

/// One thing wrong with a declarative profile, and where.
struct ProfileFinding: Hashable {
    let position: YAMLPosition
    /// What is wrong, what was expected, and what may have been meant.
    let reason: String
}

/// Everything that is wrong with a declarative profile so far.
final class ProfileFindings {
    private var all: [ProfileFinding] = []

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }

    /// In the order of the text.
    var sorted: [ProfileFinding] { all.sorted { $0.position < $1.position } }

    func report(_ reason: String, at position: YAMLPosition) {
        all.append(ProfileFinding(position: position, reason: reason))
    }
}
