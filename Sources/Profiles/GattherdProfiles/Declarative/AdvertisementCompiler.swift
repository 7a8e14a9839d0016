import GattherdGATT
import GattherdModel
import GattherdYAML

/// Compiles one entry of `advertisements`.
struct AdvertisementCompiler {
    private static let envelopes = CompiledAdvertisement.Envelope.allCases.map { (word: $0.rawValue, value: $0) }

    private static let maximumParts = 3

    private let reader: MappingReader
    private let options: SharedValues

    /// - Parameters:
    ///   - reader: The mapping.
    ///   - options: The options of the profile.
    init(_ reader: MappingReader, _ options: SharedValues) {
        (self.reader, self.options) = (reader, options)
    }

    func compile() -> CompiledAdvertisement? {
        defer { reader.finish() }
        let source = SourceReader(reader).source()
        let contents = StreamReader(reader)
        let stream = contents.name()
        let length = contents.length()
        let envelope = reader.value("envelope", .choice(Self.envelopes))
        let errors = reader.findings.count
        var fields = contents.fields(options, hasSender: true)
        fields.program.length = length
        // A wrong field, which is reported already, lacks its metric.
        let areComplete = reader.findings.count == errors
        let metrics = areComplete ? fields.metrics : nil
        let vectors = VectorReader(metrics: metrics, isKeyed: envelope != nil || fields.program.decryption != nil).read(
            reader
        )
        let format = CompiledAdvertisement.Format(
            program: DecodeProgram(fields.program),
            counter: counter(fields),
            envelope: envelope
        )
        let before = parts()
        guard let source, let stream else {
            reader.abandon()
            return nil
        }
        var descriptor = AdvertisementDescriptor(source: source, stream: stream, metrics: fields.metrics)
        descriptor.isCounted = format.counter != nil
        descriptor.isOpen = fields.program.numbering != nil
        if case .octets(let range) = length { descriptor.length = range }
        descriptor.before = before
        descriptor.beginning = reader.value("begins", .pattern)
        descriptor.names = reader.namePatterns("name")
        let range: ClosedRange<Duration> = .seconds(1)...ProfileRules.longestDuration
        if let silence = reader.value("silence", .duration(range)) { descriptor.silence = silence }
        if let renewal = reader.value("again", .duration(range)) { descriptor.renewal = renewal }
        return CompiledAdvertisement(
            descriptor: descriptor,
            format: format,
            notes: fields.notes,
            line: reader.position(of: "envelope").line,
            vectors: vectors
        )
    }

    /// Reads `after`: one part or a list.
    private func parts() -> [AdvertisementPart] {
        guard let node = reader.node("after") else { return [] }
        let nodes = node.elements ?? [node]
        if nodes.isEmpty || nodes.count > Self.maximumParts {
            reader.report("'after' is one part or a list of at most \(Self.maximumParts)", at: "after")
        }
        return nodes.prefix(Self.maximumParts).compactMap { node in
            MappingReader(node, .part, findings: reader.findings).flatMap { SourceReader($0).part() }
        }
    }

    private func counter(_ fields: FieldCompiler) -> CompiledAdvertisement.Counter? {
        guard let name = reader.value("counter", .identifier) else { return nil }
        guard fields.names.has(name), let field = fields.names[name] else {
            reader.report(fields.names.unknown(name), at: "counter")
            return nil
        }
        let metric = fields.metrics.firstIndex { $0.name == name }
        return CompiledAdvertisement.Counter(register: field.register, metric: metric)
    }
}
