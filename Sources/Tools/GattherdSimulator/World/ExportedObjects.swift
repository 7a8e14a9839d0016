/// The objects on the bus, by path.
struct ExportedObjects: Sendable {
    private var nodes: [String: Node] = [:]

    subscript(path: String) -> Node? { nodes[path] }

    /// All objects, ordered by path.
    var sorted: [(path: String, node: Node)] {
        nodes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Adds the objects that exist while bluetoothd runs.
    mutating func addRoots() {
        nodes["/"] = .root
        nodes["/org/bluez"] = .bluez
    }

    /// Adds an object.
    ///
    /// Returns false if the path is in use.
    mutating func insert(_ node: Node, at path: String) -> Bool {
        guard nodes[path] == nil else { return false }
        nodes[path] = node
        return true
    }

    mutating func remove(_ path: String) -> Node? {
        nodes.removeValue(forKey: path)
    }

    mutating func removeAll() {
        nodes.removeAll()
    }

    /// The names of the path elements below a path; `nil` if nothing exists at the path or below it.
    func children(of path: String) -> [String]? {
        let prefix = path == "/" ? "/" : path + "/"
        let below = nodes.keys.filter { $0 != path && $0.hasPrefix(prefix) }
        guard !below.isEmpty || nodes[path] != nil else { return nil }
        return Set(below.map { String($0.dropFirst(prefix.count).prefix { $0 != "/" }) }).sorted()
    }
}
