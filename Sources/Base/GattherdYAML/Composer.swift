/// A builder of the tree from parser events, with bounded size and depth.
struct Composer: ~Copyable {
    /// A complete node and its size with expanded aliases.
    private struct Built {
        let node: YAMLNode
        /// The number of nodes.
        let size: Int
        /// The number of levels of lists and mappings.
        let height: Int
    }

    private var events: YAMLParser
    private var anchors: [String: Built] = [:]
    private var count = 0

    init(events: consuming YAMLParser) {
        self.events = events
    }

    /// Reads one document up to the end of the text.
    mutating func document() throws(YAMLError) -> YAMLNode? {
        guard try nextSignificant().kind == .documentStart else { return nil }
        let root = try node(nextSignificant(), depth: 0).node
        let last = try nextSignificant()
        guard last.kind == .streamEnd else {
            throw YAMLError(position: last.position, problem: "a second document begins here; a file holds one")
        }
        return root.isNull ? nil : root
    }

    private mutating func nextSignificant() throws(YAMLError) -> YAMLEvent {
        var event = try events.next()
        while event.kind == .other { event = try events.next() }
        return event
    }

    private mutating func node(_ event: YAMLEvent, depth: Int) throws(YAMLError) -> Built {
        if case .alias(let name) = event.kind { return try expanded(name, at: event, depth: depth) }
        guard !event.hasTag else {
            throw YAMLError(position: event.position, problem: "tags ('!…') have no meaning here; leave the tag out")
        }
        try add(1, at: event)
        let built = try content(event, depth: depth)
        if let anchor = event.anchor { anchors[anchor] = built }
        return built
    }

    private mutating func content(_ event: YAMLEvent, depth: Int) throws(YAMLError) -> Built {
        switch event.kind {
        case .scalar(let text, let isPlain):
            let node = YAMLNode(.scalar(text, isPlain: isPlain), position: event.position, end: event.end)
            return Built(node: node, size: 1, height: 0)
        case .sequenceStart(let isFlow):
            try check(depth: depth + 1, at: event)
            return try sequence(from: event, isFlow: isFlow, depth: depth + 1)
        case .mappingStart(let isFlow):
            try check(depth: depth + 1, at: event)
            return try mapping(from: event, isFlow: isFlow, depth: depth + 1)
        case .documentStart, .streamEnd, .alias, .collectionEnd, .other:
            throw YAMLError(position: event.position, problem: "a value is missing here")
        }
    }

    private mutating func sequence(from start: YAMLEvent, isFlow: Bool, depth: Int) throws(YAMLError) -> Built {
        var elements: [YAMLNode] = []
        var (size, height) = (1, 0)
        var event = try nextSignificant()
        while event.kind != .collectionEnd {
            let element = try node(event, depth: depth)
            elements.append(element.node)
            (size, height) = (size + element.size, max(height, element.height))
            event = try nextSignificant()
        }
        let end = isFlow ? event.end : elements.last?.end ?? start.end
        let node = YAMLNode(.sequence(elements), position: start.position, end: end)
        return Built(node: node, size: size, height: height + 1)
    }

    private mutating func mapping(from start: YAMLEvent, isFlow: Bool, depth: Int) throws(YAMLError) -> Built {
        var members: [YAMLMember] = []
        var lines: [String: Int] = [:]
        var (size, height) = (1, 0)
        var event = try nextSignificant()
        while event.kind != .collectionEnd {
            let key = try node(event, depth: depth)
            let name = try self.name(of: key.node, in: &lines)
            let value = try node(nextSignificant(), depth: depth)
            members.append(YAMLMember(key: key.node, name: name, value: value.node))
            (size, height) = (size + key.size + value.size, max(height, value.height))
            event = try nextSignificant()
        }
        let end = isFlow ? event.end : members.last?.value.end ?? start.end
        let node = YAMLNode(.mapping(members), position: start.position, end: end)
        return Built(node: node, size: size, height: height + 1)
    }

    /// Returns the text of a key; throws if the mapping has the key already.
    private func name(of key: YAMLNode, in lines: inout [String: Int]) throws(YAMLError) -> String {
        guard let name = key.text else {
            throw YAMLError(position: key.position, problem: "a key must be a text, but this is \(key.kind)")
        }
        guard key.content != .scalar("<<", isPlain: true) else {
            let problem = "merge keys ('<<') have no meaning here; write the keys out"
            throw YAMLError(position: key.position, problem: problem)
        }
        if let line = lines.updateValue(key.position.line, forKey: name) {
            throw YAMLError(position: key.position, problem: "the key '\(name)' is already in line \(line)")
        }
        return name
    }

    private mutating func expanded(_ name: String, at event: YAMLEvent, depth: Int) throws(YAMLError) -> Built {
        guard let built = anchors[name] else {
            throw YAMLError(position: event.position, problem: "no value before this one is named '&\(name)'")
        }
        try add(built.size, at: event)
        try check(depth: depth + built.height, at: event)
        let node = YAMLNode(built.node.content, position: event.position, end: event.end)
        return Built(node: node, size: built.size, height: built.height)
    }

    private mutating func add(_ nodes: Int, at event: YAMLEvent) throws(YAMLError) {
        count += nodes
        guard count > YAML.maximumNodes else { return }
        throw YAMLError(position: event.position, problem: "more than \(YAML.maximumNodes) values, aliases expanded")
    }

    private func check(depth: Int, at event: YAMLEvent) throws(YAMLError) {
        guard depth > YAML.maximumDepth else { return }
        throw YAMLError(position: event.position, problem: "nested more than \(YAML.maximumDepth) levels deep")
    }
}
