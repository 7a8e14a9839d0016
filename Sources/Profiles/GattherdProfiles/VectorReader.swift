import GattherdGATT
import GattherdModel
import GattherdYAML

/// Reads the tests of a stream.
struct VectorReader {
    /// The metrics that a test can expect; `nil` for any.
    let metrics: [MetricDescriptor]?
    /// True if the payloads are encrypted, so that a test needs a sender.
    var isKeyed = false
    /// The keys that the profile takes.
    var keys = ProfileGrammar<BindKey>.bindKey

    /// The error in a test of a native profile.
    struct Fault: Error {
        let reason: String
    }

    /// Reads the tests of a stream in a declarative profile.
    func read(_ characteristic: MappingReader) -> [TestVector] {
        characteristic.elements("tests").compactMap { node in
            let (line, column) = (node.position.line, node.position.column)
            return vector(node, at: .line(line, column: column), characteristic.findings)
        }
    }

    /// Reads a test of a native profile.
    func read(_ text: String, number: Int) throws(Fault) -> TestVector {
        let findings = ProfileFindings()
        let node: YAMLNode?
        do throws(YAMLError) { node = try YAML.parse(text) } catch { throw Fault(reason: error.problem) }
        let test = node.flatMap { vector($0, at: .number(number), findings) }
        guard let test, findings.isEmpty else {
            throw Fault(reason: findings.sorted.first?.reason ?? "it is empty")
        }
        return test
    }

    private func vector(_ node: YAMLNode, at place: VectorPlace, _ findings: ProfileFindings) -> TestVector? {
        guard let reader = MappingReader(node, .test, findings: findings) else { return nil }
        defer { reader.finish() }
        let payloads = payloads(reader)
        let sender = isKeyed ? sender(reader) : nil
        guard reader.node["expect"] == nil || reader.node["reject"] == nil, let expectation = expectation(reader) else {
            reader.report("a test has either 'expect' or 'reject'")
            reader.abandon()
            return nil
        }
        guard let payloads else { return nil }
        return TestVector(
            place: place,
            hex: reader.node("hex").map { ($0.elements ?? [$0]).compactMap(\.text).joined(separator: ", ") } ?? "",
            payloads: payloads,
            sender: sender,
            expectation: expectation
        )
    }

    private func sender(_ reader: MappingReader) -> Sender? {
        let key = reader.value("key", keys)
        if reader.has("key"), !reader.has("address") {
            reader.report("the 'key' of a test needs the 'address' of its sender, such as C0:FF:EE:00:00:01", at: "key")
        }
        return reader.value("address", .address).map { Sender(address: $0, key: key) }
    }

    /// Reads the payloads.
    ///
    /// `hex: ""` and `hex:` are the empty payload; a missing `hex` is an error.
    private func payloads(_ reader: MappingReader) -> [[UInt8]]? {
        guard let node = reader.node("hex") else {
            guard reader.node["hex"] == nil else { return [[]] }
            return reader.required("hex", .octets).map { [$0] }
        }
        let elements = node.elements ?? [node]
        if elements.isEmpty { reader.report("'hex' needs at least one payload", at: "hex") }
        let payloads = elements.compactMap { ProfileGrammar.octets.read($0, reader.findings) }
        return payloads.count == elements.count && !payloads.isEmpty ? payloads : nil
    }

    private func expectation(_ reader: MappingReader) -> TestVector.Expectation? {
        if let reject = reader.node("reject") {
            return ProfileGrammar<String>.words.read(reject, reader.findings).map { .reject($0 == "true" ? "" : $0) }
        }
        guard let expect = reader.node("expect") else { return nil }
        guard let members = expect.members else {
            reader.findings.report("'expect' must be a mapping of metrics to values", at: expect.position)
            return .metrics([])
        }
        return .metrics(members.map { (name($0, reader), values($0.value, reader.findings)) })
    }

    private func name(_ member: YAMLMember, _ reader: MappingReader) -> String {
        let names = metrics?.map(\.name) ?? [member.name]
        if !names.contains(member.name) {
            let hint = Spelling.nearest(to: member.name, among: names).map { "did you mean '\($0)'?" }
            let known = "there are \(names.joined(separator: ", "))"
            let reason = "the characteristic has no metric '\(member.name)'; \(hint ?? known)"
            reader.findings.report(reason, at: member.key.position)
        }
        return member.name
    }

    private func values(_ node: YAMLNode, _ findings: ProfileFindings) -> [ExpectedValue] {
        (node.elements ?? [node]).compactMap { element in
            guard case .scalar(let text, let isPlain) = element.content else {
                findings.report("this is \(element.kind); expected a value", at: element.position)
                return nil
            }
            return ExpectedValue(text: text, isPlain: isPlain)
        }
    }
}

extension ProfileGrammar<BindKey> {
    static let bindKey = ProfileGrammar("a bind key: 32 or 24 hexadecimal digits") { text in
        Hexadecimal.octets(text).flatMap { BindKey($0) }
    }

    static let completeBindKey = ProfileGrammar("a bind key: 32 hexadecimal digits") { text in
        bindKey.parse(text).flatMap { $0.isComplete ? $0 : nil }
    }
}

extension ProfileGrammar<BluetoothAddress> {
    static let address = ProfileGrammar("an address such as C0:FF:EE:00:00:01") { BluetoothAddress($0) }
}
