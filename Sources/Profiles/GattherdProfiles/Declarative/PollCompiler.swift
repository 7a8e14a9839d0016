import GattherdGATT
import GattherdModel
import GattherdYAML

/// Compiles `poll`.
struct PollCompiler {
    private static let mostRequests = 16
    private let reader: MappingReader
    private let options: [ProfileOption]

    /// Creates a compiler of the mapping `poll`; `nil` if it is absent or no mapping.
    init?(_ characteristic: MappingReader, _ options: [ProfileOption]) {
        guard let node = characteristic.node("poll") else { return nil }
        guard let reader = MappingReader(node, .poll, findings: characteristic.findings) else { return nil }
        (self.reader, self.options) = (reader, options)
    }

    /// Compiles the requests.
    ///
    /// - Parameter uuid: The characteristic of the stream, which is written unless another one is named.
    /// - Returns: The requests; `nil` after a reported error.
    func rule(of uuid: BluetoothUUID?) -> PollRule? {
        defer { reader.finish() }
        let service = reader.value("service", .uuid)
        let other = reader.value("uuid", .uuid)
        let period = reader.required("every", .duration(ProfileRules.requestRange))
        let timeout = reader.value("within", .duration(ProfileRules.answerTimes))
        let requests = requests()
        let isAcknowledged = reader.value("response", .boolean)
        guard let characteristic = other ?? uuid, let period, !requests.isEmpty else { return nil }
        var rule = PollRule(
            service: service,
            characteristic: characteristic,
            requests: requests,
            period: period,
            isAcknowledged: isAcknowledged
        )
        if let timeout { rule.timeout = timeout }
        return rule
    }

    /// Reads the bytes of a request, or of several, and adds their checksums.
    private func requests() -> [WriteTemplate] {
        let templates = TemplateReader(reader, options)
        guard let node = reader.node("write") else {
            reader.report("a poll needs 'write': \(ProfileGrammar.octets.expectation), or a list of these")
            return []
        }
        let nodes = node.elements ?? [node]
        guard (1...Self.mostRequests).contains(nodes.count) else {
            reader.report("a poll has 1 to \(Self.mostRequests) requests", at: "write")
            return []
        }
        let requests = nodes.compactMap { node in
            templates.template(node, TemplateReader.times, example: "DD A5 03 00 FF FD 77")
        }
        return requests.count == nodes.count ? requests : []
    }
}
