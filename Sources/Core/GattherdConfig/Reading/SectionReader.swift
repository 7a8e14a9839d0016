import GattherdYAML

/// Reads the members of a mapping, which may be in several files.
///
/// The caller reads each key that the section may have; ``finish()`` reports the others.
package final class SectionReader {
    /// A key and its value.
    private struct Member {
        let key: FileNode
        let value: FileNode
    }

    private enum Lookup {
        case absent
        /// An invalid value, which is already reported.
        case wrong
        case found(Located<String>)
    }

    /// The section's name in errors.
    private let title: String
    /// The place of errors about missing keys; `nil` at the top level, which has no required keys.
    package let place: ConfigPlace?
    private let findings: ConfigFindings
    private let substitution: Substitution
    private var members: [String: [Member]] = [:]
    private var order: [String] = []
    /// The keys that were read, in order, and for look-ups.
    private var (known, knownNames): ([String], Set<String>) = ([], [])
    private var forbidden: Set<String> = []
    /// True if a part is not a mapping; missing keys are then not reported.
    private var isBroken = false
    /// Records the keys instead of reading them, for references; `nil` while a configuration is read.
    private var recorder: SectionRecorder?

    /// - Parameters:
    ///   - parts: The mappings; a value of another kind is reported.
    ///   - title: The section's name in errors.
    ///   - place: The place of the section.
    ///   - findings: Receives the errors.
    ///   - substitution: The environment.
    init(
        _ parts: [FileNode],
        title: String,
        place: ConfigPlace?,
        findings: ConfigFindings,
        substitution: Substitution
    ) {
        self.title = title
        self.place = place
        self.findings = findings
        self.substitution = substitution
        for part in parts where !part.node.isNull { add(part) }
    }

    /// Creates a reader without values, whose keys are recorded.
    convenience init(describing recorder: SectionRecorder) {
        let substitution = Substitution(variables: [:])
        self.init([], title: "", place: nil, findings: ConfigFindings(files: []), substitution: substitution)
        self.recorder = recorder
    }

    private func add(_ part: FileNode) {
        guard let members = part.node.members else {
            isBroken = true
            return report(.wrongKind(found: part.node.kind, expected: "a mapping of keys to values"), at: part.place)
        }
        for member in members {
            if self.members[member.name] == nil { order.append(member.name) }
            let value = FileNode(node: member.value, file: part.file)
            let key = FileNode(node: member.key, file: part.file)
            self.members[member.name, default: []].append(Member(key: key, value: value))
        }
    }

    /// Reports each key that was not read.
    func finish() {
        for name in order where !knownNames.contains(name) && !forbidden.contains(name) {
            let nearest = nearest(to: name, among: known)
            let problem = ConfigProblem.unknownKey(name, section: title, nearest: nearest, known: known)
            for member in members[name] ?? [] { report(problem, at: member.key.place) }
        }
    }

    /// Returns the word that `word` is a likely misspelling of; `nil` also if further errors are left out.
    ///
    /// The comparison with thousands of names would take minutes for a generated file.
    func nearest(to word: String, among words: [String]) -> String? {
        findings.isFull ? nil : Spelling.nearest(to: word, among: words)
    }

    package func report(_ problem: ConfigProblem, at place: ConfigPlace) {
        guard recorder == nil else { return }
        findings.report(problem, at: place)
    }

    /// Returns the value of `key`; `nil` if it is absent or invalid, which is reported.
    package func value<Value: Hashable & Sendable>(_ key: String, _ grammar: ConfigGrammar<Value>) -> Located<Value>? {
        recorder?.record(key, .value(grammar.type))
        guard case .found(let text) = lookUp(key, expecting: grammar.noun) else { return nil }
        return read(text, grammar)
    }

    /// Replaces `target` by the value of `key` if it is present and valid.
    package func read<Value: Hashable & Sendable>(
        _ key: String,
        _ grammar: ConfigGrammar<Value>,
        into target: inout Value
    ) {
        if let value = value(key, grammar) { target = value.value }
    }

    /// Returns the value of `key`; absence is an error.
    package func required<Value: Hashable & Sendable>(_ key: String, _ grammar: ConfigGrammar<Value>) -> Located<Value>?
    {
        recorder?.record(key, .value(grammar.type), isRequired: true)
        switch lookUp(key, expecting: grammar.noun) {
        case .found(let text): return read(text, grammar)
        case .wrong: return nil
        case .absent:
            if let place, !isBroken { report(.missing(key: key, section: title, advice: grammar.advice), at: place) }
            return nil
        }
    }

    /// Returns the elements of a list of values; `nil` if the list is absent.
    package func list<Value: Hashable & Sendable>(_ key: String, _ grammar: ConfigGrammar<Value>) -> [Located<Value>]? {
        recorder?.record(key, .list(grammar.type))
        guard let node = single(key) else { return nil }
        guard let elements = node.node.elements else {
            if case .found = resolve(node, expecting: "a list") {
                report(.wrongKind(found: node.node.kind, expected: "a list"), at: node.place)
            }
            return nil
        }
        return elements.compactMap { element(FileNode(node: $0, file: node.file), grammar) }
    }

    /// Reads the section `key` with `body`; `nil` if no file has it.
    @discardableResult
    package func section<Value>(_ key: String, _ body: (SectionReader) -> Value) -> Value? {
        if let recorder { return body(SectionReader(describing: recorder.section(key, .mapping))) }
        let parts = present(key)
        guard let first = parts.first else { return nil }
        let reader = child(parts.map(\.value), title: "'\(key)'", place: first.key.place)
        defer { reader.finish() }
        return body(reader)
    }

    /// Reads `key` with `body`: one section, or each mapping of a list.
    ///
    /// The mappings of several files are parts of one section, unless one file has a list.
    package func oneOrMore<Value>(_ key: String, _ body: (SectionReader) -> Value?) -> [Value] {
        if let recorder {
            return [body(SectionReader(describing: recorder.section(key, .mappingOrList)))].compactMap(\.self)
        }
        let parts = present(key).map(\.value)
        guard parts.contains(where: { $0.node.elements != nil }) else {
            return [section(key, body) ?? nil].compactMap(\.self)
        }
        return parts.flatMap { $0.node.elements == nil ? [$0] : elements(of: $0) }.compactMap { element in
            let reader = child([element], title: "'\(key)'", place: element.place)
            defer { reader.finish() }
            return body(reader)
        }
    }

    /// Reads each mapping of the list `key` with `body`; the lists of several files follow one another.
    package func sections<Value>(_ key: String, title: String, _ body: (SectionReader) -> Value?) -> [Value] {
        if let recorder {
            return [body(SectionReader(describing: recorder.section(key, .list)))].compactMap(\.self)
        }
        return present(key).map(\.value).flatMap { elements(of: $0) }.compactMap { element in
            let reader = child([element], title: title, place: element.place)
            defer { reader.finish() }
            return body(reader)
        }
    }

    /// The keys of a section without fixed keys, with their places.
    package var names: [Located<String>] {
        if recorder != nil { return [Located(SectionRecorder.anyName)] }
        return order.compactMap { name in members[name]?.first.map { Located(name, at: $0.key.place) } }
    }

    /// True if `key` is present and a mapping.
    package func isMapping(_ key: String) -> Bool {
        recorder?.answersMapping ?? (present(key).first?.value.node.members != nil)
    }

    /// True if `key` is present and a list without elements.
    func isEmptyList(_ key: String) -> Bool { present(key).first?.value.node.elements?.isEmpty == true }

    /// Returns the place of `key`, if it is present.
    package func place(of key: String) -> ConfigPlace? { present(key).first?.key.place }

    /// True if the text of `key` is exactly `word`, with variables replaced.
    package func isWord(_ key: String, _ word: String) -> Bool {
        recorder?.record(key, .value(.choice([word])))
        guard let text = present(key).first?.value.node.text else { return false }
        return (try? substitution.apply(to: text)) == word
    }

    /// Reports `problem` at the key, if it is present.
    package func forbid(_ key: String, _ problem: ConfigProblem) {
        forbidden.insert(key)
        for member in members[key] ?? [] { report(problem, at: member.key.place) }
    }

    private func child(_ parts: [FileNode], title: String, place: ConfigPlace) -> SectionReader {
        SectionReader(parts, title: title, place: place, findings: findings, substitution: substitution)
    }

    private func elements(of list: FileNode) -> [FileNode] {
        guard let elements = list.node.elements else {
            report(.wrongKind(found: list.node.kind, expected: "a list"), at: list.place)
            return []
        }
        return elements.map { FileNode(node: $0, file: list.file) }
    }

    private func element<Value: Hashable & Sendable>(
        _ node: FileNode,
        _ grammar: ConfigGrammar<Value>
    ) -> Located<Value>? {
        guard !node.node.isNull, case .found(let text) = resolve(node, expecting: grammar.noun) else {
            if node.node.isNull { report(.wrongKind(found: node.node.kind, expected: grammar.noun), at: node.place) }
            return nil
        }
        return read(text, grammar)
    }

    /// Returns the members named `key` that are not empty.
    private func present(_ key: String) -> [Member] {
        if knownNames.insert(key).inserted { known.append(key) }
        return (members[key] ?? []).filter { !$0.value.node.isNull }
    }

    /// Returns the value of `key`; reports each further one.
    private func single(_ key: String) -> FileNode? {
        let all = present(key)
        guard let first = all.first else { return nil }
        for other in all.dropFirst() {
            report(.setTwice(key: key, first: first.key.place.description), at: other.key.place)
        }
        return first.value
    }

    private func lookUp(_ key: String, expecting noun: String) -> Lookup {
        guard let node = single(key) else { return .absent }
        return resolve(node, expecting: noun)
    }

    /// Returns the text of a scalar with its variables replaced; an empty text counts as absent.
    private func resolve(_ node: FileNode, expecting noun: String) -> Lookup {
        guard case .scalar(let text, let isPlain) = node.node.content else {
            report(.wrongKind(found: node.node.kind, expected: noun), at: node.place)
            return .wrong
        }
        do throws(Substitution.Failure) {
            let value = try substitution.apply(to: text)
            return value.isEmpty && isPlain ? .absent : .found(Located(value, at: node.place))
        } catch {
            report(error.problem, at: place(of: error, in: node, isPlain: isPlain))
            return .wrong
        }
    }

    /// Returns the place of a failed substitution; for a text of several lines and for an alias, that of the whole
    /// text.
    private func place(of failure: Substitution.Failure, in node: FileNode, isPlain: Bool) -> ConfigPlace {
        let (start, end) = (node.node.position, node.node.end)
        guard start.line == end.line else { return node.place }
        let column = start.column + failure.offset + (isPlain ? 0 : 1)
        // The text of an alias stands at its anchor, so the column may lie beyond this node.
        guard column < end.column else { return node.place }
        return ConfigPlace(node.file, line: start.line, column: column, width: min(failure.width, end.column - column))
    }

    private func read<Value: Hashable & Sendable>(
        _ text: Located<String>,
        _ grammar: ConfigGrammar<Value>
    ) -> Located<Value>? {
        guard let value = grammar.read(text.value) else {
            guard let place = text.place else { return nil }
            report(.invalid(text.value, expected: grammar.noun, advice: grammar.advice), at: place)
            return nil
        }
        return Located(value, at: text.place)
    }
}
