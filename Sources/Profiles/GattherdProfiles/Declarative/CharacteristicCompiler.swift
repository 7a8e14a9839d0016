import GattherdGATT
import GattherdModel
import GattherdYAML

/// A compiled characteristic.
struct CompiledCharacteristic: Sendable {
    private(set) var descriptor: CharacteristicDescriptor
    let program: DecodeProgram
    /// The source of each step of the program.
    private(set) var notes: [FieldNote]
    private(set) var vectors: [TestVector]

    /// The characteristic without notes and tests.
    var forDecoding: CompiledCharacteristic {
        var stripped = self
        (stripped.notes, stripped.vectors) = ([], [])
        return stripped
    }
}

extension CompiledCharacteristic {
    /// Returns the characteristic with the values of options in its requests.
    func resolved(_ option: (String) -> Int64?) -> CompiledCharacteristic {
        guard let poll = descriptor.poll else { return self }
        var resolved = self
        resolved.descriptor.poll?.requests = poll.requests.map { $0.resolved(option) }
        return resolved
    }
}

/// Compiles one entry of `characteristics`.
struct CharacteristicCompiler {
    private static let paths = [(word: "signals", value: false), (word: "socket", value: true)]
    private let reader: MappingReader

    init(_ reader: MappingReader) {
        self.reader = reader
    }

    /// - Parameter shared: The values that earlier characteristics share; those of this one are added.
    /// - Returns: The characteristic; `nil` after a reported error.
    func compile(_ shared: inout SharedValues) -> CompiledCharacteristic? {
        defer { reader.finish() }
        let uuid = reader.required("uuid", .uuid)
        let contents = StreamReader(reader)
        let stream = contents.name()
        let subscription = subscription()
        let pollInstead = pollInstead()
        let isReadAtConnect = pollInstead != nil || reader.isTrue("read")
        let (fields, vectors) = fields(contents, &shared)
        if subscription == SubscriptionMode.none && !isReadAtConnect && !reader.has("record") {
            reader.report("it is neither subscribed nor read; write 'subscribe: notify' or 'read: true'")
        }
        let record = RecordCompiler(reader, metrics: fields.metrics)?.compile()
        var descriptor = CharacteristicDescriptor(
            uuid: uuid ?? 0,
            stream: stream ?? "",
            metrics: record?.metrics ?? fields.metrics
        )
        descriptor.record = record?.rule
        descriptor.messages = MessageCompiler(reader)?.rule()
        descriptor.poll = PollCompiler(reader, shared.options)?.rule(of: uuid)
        checkNotified(subscription, isReadAtConnect: isReadAtConnect)
        descriptor.subscription = subscription ?? .none
        descriptor.isReadAtConnect = isReadAtConnect
        descriptor.isReadFirst = isReadAtConnect && !fields.shares.isEmpty
        descriptor.pollInstead = pollInstead
        readDelivery(&descriptor)
        guard uuid != nil, stream != nil else { return nil }
        return CompiledCharacteristic(
            descriptor: descriptor,
            program: DecodeProgram(fields.program),
            notes: fields.notes,
            vectors: vectors
        )
    }

    /// Reads the fields, what they share with later characteristics, and their test vectors.
    private func fields(_ contents: StreamReader, _ shared: inout SharedValues) -> (FieldCompiler, [TestVector]) {
        let before = reader.findings.count
        var fields = contents.fields(shared)
        for share in fields.shares {
            guard let index = shared.add(share.name, bits: share.bits, signedBits: share.signedBits) else {
                reader.report("a profile shares too many values", at: "fields")
                break
            }
            fields.program.share(share.register, as: index)
        }
        fields.program.length = contents.length()
        // A wrong field, which is reported already, lacks its metric.
        let areComplete = reader.findings.count == before
        return (fields, VectorReader(metrics: areComplete ? fields.metrics : nil).read(reader))
    }

    /// Reads how the values are delivered.
    private func readDelivery(_ descriptor: inout CharacteristicDescriptor) {
        descriptor.service = reader.value("service", .uuid)
        descriptor.isRequired = reader.value("required", .boolean) ?? false
        descriptor.prefersSocket = reader.value("notify", .choice(Self.paths)) ?? false
        descriptor.silence = reader.value("silence", .duration(.milliseconds(1)...ProfileRules.longestDuration))
    }

    /// Reports messages and polls of a characteristic whose values are not notified.
    private func checkNotified(_ subscription: SubscriptionMode?, isReadAtConnect: Bool) {
        guard subscription != .notify, subscription != .indicate else {
            if isReadAtConnect { reader.forbid(["message"], "is for notified values, and this one is also read") }
            return
        }
        reader.forbid(["message", "poll"], "needs 'subscribe: notify' or 'subscribe: indicate'")
    }

    /// Returns `nil` after a reported error.
    private func subscription() -> SubscriptionMode? {
        guard let node = reader.node("subscribe") else { return SubscriptionMode.none }
        guard node.members == nil else { return polling(node) }
        let words: [(word: String, value: SubscriptionMode)] = [
            ("notify", .notify), ("indicate", .indicate), ("none", .none),
        ]
        return ProfileGrammar.choice(words).read(node, reader.findings)
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
