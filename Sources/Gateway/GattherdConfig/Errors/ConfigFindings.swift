import GattherdYAML

/// A value of the text and the file that it is in.
struct FileNode {
    let node: YAMLNode
    let file: ConfigFile

    var place: ConfigPlace { ConfigPlace(node, in: file) }
}

/// What reading a configuration has found to be wrong so far.
final class ConfigFindings {
    private let order: [String]
    private var all: [ConfigError] = []

    /// - Parameter files: The files' names in the order in which they are read.
    init(files: [String]) {
        order = files
    }

    func report(_ problem: ConfigProblem, at place: ConfigPlace) {
        all.append(ConfigError(problem, at: place))
    }

    /// What was reported, in the order of the text.
    var sorted: [ConfigError] {
        let ranks = Dictionary(zip(order, order.indices)) { first, _ in first }
        return
            all
            .map { (rank: (ranks[$0.file] ?? 0, $0.place?.line ?? 0, $0.place?.column ?? 0), error: $0) }
            .sorted { $0.rank < $1.rank }
            .map(\.error)
    }
}
