import GattherdModel
import GattherdYAML

/// Reads the source of an advertisement, or of a part of one.
struct SourceReader {
    private static let maximumCompanies = 64

    private let reader: MappingReader

    init(_ reader: MappingReader) {
        self.reader = reader
    }

    /// Reads the source, which exactly one key must give.
    func source() -> SourcePattern? {
        let company = company()
        let service = reader.value("service_data", .uuid)
        guard reader.has("manufacturer") != reader.has("service_data") else {
            reader.report("\(reader.title) has either 'manufacturer' or 'service_data'")
            return nil
        }
        return company ?? service.map { .serviceData($0) }
    }

    /// Reads a part whose bytes come before others, which therefore has a fixed length.
    func part() -> AdvertisementPart? {
        defer { reader.finish() }
        let source = source()
        let beginning = reader.value("begins", .pattern)
        guard let length = reader.required("length", .integer(1...254)), let source else { return nil }
        return AdvertisementPart(source: source, beginning: beginning, length: Int(length))
    }

    /// Reads `manufacturer`: a company, a list of companies, or `any`.
    private func company() -> SourcePattern? {
        guard let node = reader.node("manufacturer") else { return nil }
        if node.text == "any" { return .anyManufacturer }
        guard let elements = node.elements else {
            return ProfileGrammar.company.read(node, reader.findings).map { .manufacturer($0) }
        }
        guard !elements.isEmpty, elements.count <= Self.maximumCompanies else {
            reader.report(
                "a list of companies has 1 to \(Self.maximumCompanies), such as [0xEC88, 0x8801]",
                at: "manufacturer"
            )
            return nil
        }
        let companies = elements.compactMap { ProfileGrammar.company.read($0, reader.findings) }
        return companies.count == elements.count ? .manufacturers(companies) : nil
    }
}

extension ProfileGrammar<UInt16> {
    /// The grammar of a company identifier.
    static let company = ProfileGrammar("a company's number from 0 to 0xFFFF, such as 0x0499") { text in
        Integers.parse(text).flatMap { UInt16(exactly: $0) }
    }
}
