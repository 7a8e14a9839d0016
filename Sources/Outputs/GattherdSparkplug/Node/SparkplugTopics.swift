/// The topics of an edge node (specification, chapter 4).
struct SparkplugTopics: Hashable, Sendable {
    /// A message from a host.
    enum Command: Hashable, Sendable {
        case node
        case device(String)
        case state
    }

    let ofNode: String
    private let group: String
    private let node: String
    /// The topic of the primary host's state, if there is one.
    let hostState: String?

    init(group: String, node: String, primaryHost: String?) {
        self.group = group
        self.node = node
        ofNode = "spBv1.0/\(group)"
        hostState = primaryHost.map { "spBv1.0/STATE/\($0)" }
    }

    var nodeBirth: String { topic("NBIRTH") }
    var nodeData: String { topic("NDATA") }
    var nodeDeath: String { topic("NDEATH") }
    var nodeCommand: String { topic("NCMD") }
    /// The filter for the commands of all devices.
    var deviceCommands: String { topic("DCMD", "+") }

    func deviceBirth(_ device: String) -> String { topic("DBIRTH", device) }
    func deviceData(_ device: String) -> String { topic("DDATA", device) }
    func deviceDeath(_ device: String) -> String { topic("DDEATH", device) }

    /// The filters of all subscriptions.
    var subscriptions: [String] { [nodeCommand, deviceCommands] + (hostState.map { [$0] } ?? []) }

    /// The meaning of a received message's topic; `nil` for a topic without subscription.
    func command(_ topic: String) -> Command? {
        if topic == nodeCommand { return .node }
        if topic == hostState { return .state }
        let prefix = self.topic("DCMD", "")
        guard topic.hasPrefix(prefix) else { return nil }
        return .device(String(topic.dropFirst(prefix.count)))
    }

    private func topic(_ type: String) -> String { "\(ofNode)/\(type)/\(node)" }
    private func topic(_ type: String, _ device: String) -> String { "\(ofNode)/\(type)/\(node)/\(device)" }

    /// True for a valid group, edge node or host id of 1 to 128 bytes; all but control characters, `+`, `/` and `#`.
    static func isValid(identifier: String) -> Bool {
        let isPlain = identifier.unicodeScalars.allSatisfy { scalar in
            scalar.properties.generalCategory != .control && !"+/#".unicodeScalars.contains(scalar)
        }
        return isPlain && (1...128).contains(identifier.utf8.count)
    }
}
