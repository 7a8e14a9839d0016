import GattherdGATT
import GattherdModel
import GattherdYAML

/// A characteristic as it is decoded.
struct CompiledCharacteristic: Sendable {
    let descriptor: CharacteristicDescriptor
    let program: DecodeProgram
    /// What the author wrote for each step of the program.
    let notes: [FieldNote]
    let vectors: [Vector]
}

/// Reads one characteristic.
struct CharacteristicCompiler {
    private static let paths = [(word: "signals", value: false), (word: "socket", value: true)]
    private let reader: MappingReader

    init(_ reader: MappingReader) {
        self.reader = reader
    }

    func compile() -> CompiledCharacteristic? {
        defer { reader.finish() }
        let uuid = reader.required("uuid", .uuid)
        let stream = stream()
        let subscription = subscription()
        let pollInstead = pollInstead()
        let isReadAtConnect = pollInstead != nil || reader.isTrue("read")
        let before = reader.findings.count
        var fields = fields()
        fields.program.length = length()
        // Where a field is wrong, its metric is missing: that is said already.
        let areComplete = reader.findings.count == before
        let vectors = VectorReader(metrics: areComplete ? fields.metrics : nil).read(reader)
        if subscription == SubscriptionMode.none && !isReadAtConnect {
            reader.report("nothing asks for its values; write 'subscribe: notify' or 'read: true'")
        }
        var descriptor = CharacteristicDescriptor(uuid: uuid ?? 0, stream: stream ?? "", metrics: fields.metrics)
        descriptor.service = reader.value("service", .uuid)
        descriptor.subscription = subscription ?? .none
        descriptor.isReadAtConnect = isReadAtConnect
        descriptor.pollInstead = pollInstead
        descriptor.isRequired = reader.value("required", .boolean) ?? false
        descriptor.prefersSocket = reader.value("notify", .choice(Self.paths)) ?? false
        descriptor.silence = reader.value("silence", .duration(.milliseconds(1)...ProfileRules.longestDuration))
        guard uuid != nil, stream != nil else { return nil }
        return CompiledCharacteristic(
            descriptor: descriptor,
            program: fields.program,
            notes: fields.notes,
            vectors: vectors
        )
    }

    private func stream() -> String? {
        guard let stream = reader.required("stream", .identifier) else { return nil }
        if ProfileRules.reservedStreams.contains(stream) {
            reader.report("'\(stream)' is a topic that every device has; give the stream another name", at: "stream")
        }
        return stream
    }

    private func fields() -> FieldCompiler {
        var compiler = FieldCompiler(reader.findings)
        let nodes = reader.elements("fields")
        if nodes.count > FieldCompiler.mostFields {
            reader.report("a characteristic has at most \(FieldCompiler.mostFields) fields", at: "fields")
        }
        for node in nodes.prefix(FieldCompiler.mostFields) { compiler.add(node) }
        if compiler.metrics.isEmpty && reader.findings.isEmpty {
            reader.report("a characteristic needs 'fields' with at least one metric", at: "fields")
        }
        return compiler
    }

    /// A number of octets, the least and the most of them, or `exact`.
    private func length() -> DecodeProgram.Length {
        guard let node = reader.node("length") else { return .any }
        guard node.text != "exact" else { return .exact }
        let grammar = Grammar<Int64>.integer(0...512)
        guard let elements = node.elements else {
            let words = Grammar("exact, a number of octets, or [least, most]") { grammar.parse($0) }
            return words.read(node, reader.findings).map { .octets(Int($0)...Int($0)) } ?? .any
        }
        let ends = elements.compactMap { grammar.read($0, reader.findings) }
        guard ends.count == 2, elements.count == 2, ends[0] <= ends[1] else {
            if ends.count == elements.count {
                reader.findings.report("expected the least and the most octets, such as [2, 20]", at: node.position)
            }
            return .any
        }
        return .octets(Int(ends[0])...Int(ends[1]))
    }

    /// `nil` when it is wrong, which is reported.
    private func subscription() -> SubscriptionMode? {
        guard let node = reader.node("subscribe") else { return SubscriptionMode.none }
        guard node.members == nil else { return polling(node) }
        let words: [(word: String, value: SubscriptionMode)] = [
            ("notify", .notify), ("indicate", .indicate), ("none", .none),
        ]
        return Grammar.choice(words).read(node, reader.findings)
    }

    /// Reads `{read: {every: 60s}}`.
    private func polling(_ node: YAMLNode) -> SubscriptionMode? {
        guard let outer = MappingReader(node, .subscribe, findings: reader.findings) else { return nil }
        defer { outer.finish() }
        guard let read = outer.node("read") else {
            outer.report("expected notify, indicate or {read: {every: 60s}}")
            return nil
        }
        return period(read).map { .poll(every: $0) }
    }

    /// Reads `read: {every: 60s}`; `nil` for `true` and `false`.
    private func pollInstead() -> Duration? {
        guard let node = reader.node("read"), node.members != nil else { return nil }
        return period(node)
    }

    /// Reads `{every: 60s}`.
    private func period(_ node: YAMLNode) -> Duration? {
        guard let inner = MappingReader(node, .read, findings: reader.findings) else { return nil }
        defer { inner.finish() }
        return inner.required("every", .duration(ProfileRules.pollRange))
    }
}
