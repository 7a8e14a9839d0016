import GattherdModel
import GattherdYAML

/// Reads one element of `identify`.
struct ModelReader {
    private let reader: MappingReader

    init(_ reader: MappingReader) {
        self.reader = reader
    }

    /// Returns `nil` after a reported error.
    func model() -> ModelDescriptor? {
        defer { reader.finish() }
        let brand = reader.required("brand", .words)
        let model = reader.required("model", .words)
        let hasSource = reader.has("manufacturer") || reader.has("service_data")
        let source = hasSource ? SourceReader(reader).source() : nil
        if !hasSource { reader.forbid(["begins", "length"], "needs 'manufacturer' or 'service_data'") }
        if !hasSource, !reader.has("name"), !reader.has("service") {
            reader.report("a model needs 'name', 'manufacturer', 'service_data' or 'service' to be recognised by")
        }
        let beginning = reader.value("begins", .pattern)
        // Two bytes tell as much as the identifier of a company.
        let isMarked = source != .anyManufacturer || beginning.map { $0.literalCount >= 2 } ?? false
        if !isMarked, !reader.has("name"), !reader.has("service") {
            let remedy = "'name', 'service' or 'begins' with two bytes that are not ??"
            reader.report("data of any company identifies nothing without \(remedy)", at: "manufacturer")
        }
        guard let brand, let model else {
            reader.abandon()
            return nil
        }
        var descriptor = ModelDescriptor(brand: brand, model: model)
        descriptor.source = source
        descriptor.names = reader.namePatterns("name")
        if source == nil || !isMarked, !reader.has("service"),
            let vague = descriptor.names.first(where: { $0.literalCount == 0 })
        {
            reader.report("the name '\(vague)' identifies nothing", at: "name")
        }
        descriptor.beginning = beginning
        if case .octets(let range) = StreamReader(reader).length() { descriptor.length = range }
        descriptor.service = reader.value("service", .uuid)
        descriptor.needsActiveScan = reader.value("active_scan", .boolean) ?? false
        descriptor.key = reader.value("key", .words)
        return descriptor
    }
}

extension MappingReader {
    /// Reads patterns of names: one or a list.
    func namePatterns(_ key: String) -> [NamePattern] {
        guard let node = node(key) else { return [] }
        return (node.elements ?? [node]).compactMap { element in
            ProfileGrammar<String>.words.read(element, findings).map { NamePattern($0) }
        }
    }
}
