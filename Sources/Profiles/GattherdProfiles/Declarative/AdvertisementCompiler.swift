import GattherdGATT
import GattherdModel
import GattherdYAML

/// Compiles one entry of `advertisements`.
struct AdvertisementCompiler {
    private static let envelopes = CompiledAdvertisement.Envelope.allCases.map { (word: $0.rawValue, value: $0) }

    private let reader: MappingReader

    init(_ reader: MappingReader) {
        self.reader = reader
    }

    func compile() -> CompiledAdvertisement? {
        defer { reader.finish() }
        let source = source()
        let contents = StreamReader(reader)
        let stream = contents.name()
        let length = contents.length()
        let envelope = reader.value("envelope", .choice(Self.envelopes))
        let before = reader.findings.count
        var fields = contents.fields(SharedValues())
        fields.program.length = length
        // A wrong field, which is reported already, lacks its metric.
        let areComplete = reader.findings.count == before
        let metrics = areComplete ? fields.metrics : nil
        let vectors = VectorReader(metrics: metrics, isKeyed: envelope != nil).read(reader)
        let format = CompiledAdvertisement.Format(
            program: fields.program,
            counter: counter(fields),
            envelope: envelope
        )
        guard let source, let stream else { return nil }
        var descriptor = AdvertisementDescriptor(source: source, stream: stream, metrics: fields.metrics)
        descriptor.isCounted = format.counter != nil
        descriptor.isOpen = fields.program.numbering != nil
        if case .octets(let range) = length { descriptor.length = range }
        descriptor.beginning = reader.value("begins", .pattern)
        descriptor.name = reader.value("name", .words).map { NamePattern($0) }
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

    /// Reads the source, which exactly one key must give.
    private func source() -> AdvertisementSource? {
        let company = reader.value("manufacturer", .company)
        let service = reader.value("service_data", .uuid)
        guard reader.has("manufacturer") != reader.has("service_data") else {
            reader.report("an advertisement has either 'manufacturer' or 'service_data'")
            return nil
        }
        return company.map { .manufacturer($0) } ?? service.map { .serviceData($0) }
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

extension ProfileGrammar<UInt16> {
    /// The grammar of a company identifier.
    static let company = ProfileGrammar("a company's number from 0 to 0xFFFF, such as 0x0499") { text in
        Integers.parse(text).flatMap { UInt16(exactly: $0) }
    }
}
