import GattherdGATT
import GattherdModel
import GattherdYAML

/// Compiles one entry of `records`: the download of a stream's stored records.
struct DownloadCompiler {
    private static let widths: [(word: String, value: Int)] =
        [("none", 0), ("u8", 1), ("u16", 2)] + [2, 3, 4, 5, 6].map { ("u\(8 * $0)le", $0) }
    private static let counters = FieldType.words.filter { word in
        if case .integer(let octets, false, false) = word.value { octets < 8 } else { false }
    }
    private static let periods: ClosedRange<Duration> = .seconds(1) ... .seconds(86_400)

    /// The profile's streams.
    let streams: [CharacteristicDescriptor]
    let options: [ProfileOption]

    func download(_ reader: MappingReader) -> DownloadDescriptor? {
        defer { reader.finish() }
        let stream = stream(reader)
        let kinds = ["racp", "request", "block"].filter { reader.has($0) }
        guard kinds.count == 1 else {
            reader.report("a download has exactly one of 'racp', 'request' and 'block'")
            reader.abandon()
            return nil
        }
        let uuid = kinds[0] == "racp" ? reader.value("racp", .uuid) : reader.required("uuid", .uuid)
        let procedure = procedure(reader, kinds[0])
        // All keys are read before the first mistake ends it, so that each mistake is reported.
        let service = reader.value("service", .uuid)
        let isAcknowledged = reader.value("response", .boolean) ?? true
        let clock = clock(reader, "clock") ?? clock(reader, "start", isStart: true)
        let timeout = reader.value("within", .duration(ProfileRules.answerTimes))
        let period = reader.value("every", .duration(Self.periods))
        let answers = kinds[0] == "request" ? reader.value("answers", .uuid) : nil
        guard let stream, let uuid, let procedure else { return nil }
        var download = DownloadDescriptor(stream: stream, service: service, characteristic: uuid, procedure: procedure)
        (download.isAcknowledged, download.clock, download.period) = (isAcknowledged, clock, period)
        download.answers = answers
        if let timeout { download.timeout = timeout }
        return download
    }

    private func stream(_ reader: MappingReader) -> String? {
        guard let name = reader.required("stream", .identifier) else { return nil }
        guard let stream = streams.first(where: { $0.stream == name }) else {
            reader.report("the profile has no stream '\(name)'", at: "stream")
            return nil
        }
        guard stream.record != nil else {
            let advice = "which says what numbers and dates a record"
            reader.report("the stream '\(name)' needs 'record', \(advice)", at: "stream")
            return nil
        }
        return name
    }

    private func procedure(_ reader: MappingReader, _ kind: String) -> DownloadDescriptor.Procedure? {
        switch kind {
        case "racp":
            reader.forbid(["check"], "is for 'request' and 'block'")
            return .accessControlPoint(width: reader.value("filter", .choice(Self.widths)) ?? 2)
        case "request":
            let end = reader.value("end", .pattern)
            return template(reader, "request", [.next, .since, .time(.now)]).map { .request($0, end: end) }
        default:
            let first = reader.value("first", .integer(0...1_000_000)) ?? 0
            let isRead = reader.value("reads", .boolean) ?? false
            return template(reader, "block", [.index, .time(.now)]).map { .blocks($0, first: first, isRead: isRead) }
        }
    }

    private func template(
        _ reader: MappingReader,
        _ key: String,
        _ allowed: [WriteTemplate.Variable]
    ) -> WriteTemplate? {
        let example = key == "block" ? "82 04 {index:u16le}" : "3A 3A 11 {now:u32be} {since:u32be}"
        return TemplateReader(reader, options).template(key, allowed, example: example)
    }

    /// Reads `2a2b` or `{uuid: fff4, type: u32le, unit: s}`.
    private func clock(_ reader: MappingReader, _ key: String, isStart: Bool = false) -> DownloadDescriptor.Clock? {
        guard let node = reader.node(key) else { return nil }
        guard node.members != nil else {
            return reader.value(key, .uuid).map { DownloadDescriptor.Clock(characteristic: $0, isStart: isStart) }
        }
        guard let inner = MappingReader(node, .clock, findings: reader.findings) else { return nil }
        defer { inner.finish() }
        let uuid = inner.required("uuid", .uuid)
        let type = inner.required("type", .choice(Self.counters))
        let unit = inner.required("unit", .choice(RecordCompiler.units))
        guard let uuid, let unit, let width = type?.width else { return nil }
        return DownloadDescriptor.Clock(
            characteristic: uuid,
            format: .count(octets: width, unit: unit),
            isStart: isStart
        )
    }
}
