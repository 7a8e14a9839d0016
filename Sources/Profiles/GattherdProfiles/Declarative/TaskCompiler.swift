import GattherdGATT
import GattherdModel
import GattherdYAML

/// Compiles one entry of `on_connect`.
struct TaskCompiler {
    private static let words = FieldType.words.filter { word in
        if case .integer(let octets, false, false) = word.value { octets < 8 } else { false }
    }

    /// The profile's streams.
    let streams: [CharacteristicDescriptor]
    let options: [ProfileOption]

    func task(_ reader: MappingReader) -> ConnectionTaskDescriptor? {
        defer { reader.finish() }
        let uuid = reader.required("uuid", .uuid)
        let service = reader.value("service", .uuid)
        let isRequired = reader.value("required", .boolean) ?? false
        let templates = TemplateReader(reader, options)
        guard let uuid, let action = action(reader, uuid, service, templates) else {
            reader.abandon()
            return nil
        }
        return ConnectionTaskDescriptor(
            service: service,
            characteristic: uuid,
            action: action,
            isRequired: isRequired,
            resume: action == .listen ? nil : resume(reader, templates)
        )
    }

    private func resume(_ task: MappingReader, _ templates: TemplateReader) -> ResumeRule? {
        guard let node = task.node("resume"),
            let reader = MappingReader(node, .resume, findings: task.findings)
        else { return nil }
        defer { reader.finish() }
        let prefix = reader.required("write", .octets)
        let type = reader.required("type", .choice(Self.words))
        let (stream, metric) = (reader.required("stream", .identifier), reader.required("metric", .identifier))
        guard let stream, let metric else { return nil }
        guard let metrics = streams.first(where: { $0.stream == stream })?.metrics else {
            reader.report("the profile has no stream '\(stream)'", at: "stream")
            return nil
        }
        guard let index = metrics.firstIndex(where: { $0.name == metric }) else {
            reader.report("the stream '\(stream)' has no metric '\(metric)'", at: "metric")
            return nil
        }
        guard let prefix, let width = type?.width else { return nil }
        templates.check.check(count: prefix.count + width)
        var rule = ResumeRule(stream: stream, metric: index, prefix: prefix, width: width)
        rule.checksum = templates.check.checksum
        return rule
    }

    private func action(
        _ reader: MappingReader,
        _ uuid: BluetoothUUID,
        _ service: BluetoothUUID?,
        _ templates: TemplateReader
    ) -> ConnectionTaskDescriptor.Action? {
        let isListening = reader.value("listen", .boolean) ?? false
        guard reader.has("write") != isListening else {
            reader.report("a task has either 'write' or 'listen: true'")
            return nil
        }
        if isListening {
            reader.forbid(["check"], "is for bytes that are written")
            return .listen
        }
        let example = "A5 {year-2000:u8} {month:u8} {day:u8}"
        let template = templates.template("write", TemplateReader.times, example: example)
        let isAcknowledged = reader.value("response", .boolean) ?? true
        let answer = AnswerCompiler.answer(reader, writtenTo: uuid, in: service)
        return template.map { .write($0, isAcknowledged: isAcknowledged, answer: answer) }
    }
}

/// Reads `answer`.
enum AnswerCompiler {
    /// Reads the response rule of a write to `uuid`; by default the same characteristic responds.
    static func answer(
        _ owner: MappingReader,
        writtenTo uuid: BluetoothUUID,
        in service: BluetoothUUID?
    ) -> ResponseRule? {
        guard let node = owner.node("answer"),
            let reader = MappingReader(node, .answer, findings: owner.findings)
        else { return nil }
        defer { reader.finish() }
        let isOther = reader.has("uuid")
        let other = reader.value("uuid", .uuid)
        var answer = ResponseRule(
            service: reader.value("service", .uuid) ?? (isOther ? nil : service),
            characteristic: other ?? uuid,
            cases: successes(reader) + refusals(reader)
        )
        if let within = reader.value("within", .duration(ProfileRules.answerTimes)) { answer.timeout = within }
        return answer
    }

    private static func successes(_ reader: MappingReader) -> [ResponseRule.Case] {
        guard let node = reader.node("ok") else {
            reader.report("an answer needs 'ok': \(ProfileGrammar.response.expectation), or a list of these")
            return []
        }
        return (node.elements ?? [node]).compactMap { element in
            ProfileGrammar.response.read(element, reader.findings).map { ResponseRule.Case($0, .success) }
        }
    }

    private static func refusals(_ reader: MappingReader) -> [ResponseRule.Case] {
        guard let node = reader.node("error") else { return [] }
        guard let members = node.members else {
            let reason = "'error' is a mapping of answers to what they mean, such as {\"80 05 02\": not supported}"
            reader.findings.report(reason, at: node.position)
            return []
        }
        return members.compactMap { member in
            let pattern = ProfileGrammar.response.read(member.key, reader.findings)
            let words = ProfileGrammar<String>.words.read(member.value, reader.findings)
            guard let pattern, let words else { return nil }
            return ResponseRule.Case(pattern, .refusal(words))
        }
    }
}
