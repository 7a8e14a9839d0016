import GattherdYAML

/// A YAML value and its file.
struct FileNode {
    let node: YAMLNode
    let file: ConfigFile

    var place: ConfigPlace { ConfigPlace(node, in: file) }
}

/// The errors found so far while a configuration is read.
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

    /// The reported errors, in the order of the text.
    var sorted: [ConfigError] {
        let ranks = Dictionary(zip(order, order.indices)) { first, _ in first }
        return
            all
            .map { (rank: (ranks[$0.file] ?? 0, $0.place?.line ?? 0, $0.place?.column ?? 0), error: $0) }
            .sorted { $0.rank < $1.rank }
            .map(\.error)
    }
}
