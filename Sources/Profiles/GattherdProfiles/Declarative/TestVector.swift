import GattherdConfig
import GattherdGATT
import GattherdModel
import GattherdYAML

/// A test of a profile: payloads and the expected result.
struct TestVector: Sendable {
    enum Expectation: Sendable {
        /// Exactly these metrics.
        case metrics([(name: String, values: [ExpectedValue])])
        /// A reject whose reason contains this text.
        case reject(String)
    }

    let position: YAMLPosition
    let hex: String
    /// The payloads of one connection; the last one is compared.
    let payloads: [[UInt8]]
    /// The sender; `nil` for any.
    let sender: Sender?
    let expectation: Expectation
}

/// An expected value as written.
struct ExpectedValue: Hashable, Sendable, CustomStringConvertible {
    let text: String
    /// True for an unquoted number, true, false or null.
    let isPlain: Bool

    /// The value, in quotes if it is a text.
    var description: String {
        let isText = !isPlain || !(isNull || number != nil || ["true", "false"].contains(text))
        return isText ? "\"\(text)\"" : text
    }

    /// True if `value` is the expected one; integers and other numbers are compared by value.
    func matches(_ value: SampleValue) -> Bool {
        switch value {
        case .text(let actual): text == actual && !isNull
        case .integer(let actual): isPlain && (Integers.parse(text) == actual || number == Double(actual))
        case .real(let actual): isPlain && number == actual
        case .boolean(let actual): isPlain && text == (actual ? "true" : "false")
        case .null: isNull
        }
    }

    private var isNull: Bool { isPlain && ["null", "~", ""].contains(text) }
    private var number: Double? { Double(text) ?? Rational(text)?.value }
}

/// Reads the `tests` of a characteristic.
struct VectorReader {
    /// The metrics that a test can expect; `nil` for any.
    let metrics: [MetricDescriptor]?
    /// True if the payloads are encrypted, so that a test needs a sender.
    var isKeyed = false

    func read(_ characteristic: MappingReader) -> [TestVector] {
        characteristic.elements("tests").compactMap { node in
            guard let reader = MappingReader(node, .test, findings: characteristic.findings) else {
                return nil
            }
            defer { reader.finish() }
            return vector(reader)
        }
    }

    private func vector(_ reader: MappingReader) -> TestVector? {
        let payloads = payloads(reader)
        let sender = isKeyed ? sender(reader) : nil
        guard reader.node["expect"] == nil || reader.node["reject"] == nil, let expectation = expectation(reader) else {
            reader.report("a test has either 'expect' or 'reject'")
            return nil
        }
        guard let payloads else { return nil }
        return TestVector(
            position: reader.node.position,
            hex: reader.node("hex").map { ($0.elements ?? [$0]).compactMap(\.text).joined(separator: ", ") } ?? "",
            payloads: payloads,
            sender: sender,
            expectation: expectation
        )
    }

    private func sender(_ reader: MappingReader) -> Sender? {
        let key = reader.value("key", .bindKey)
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
    static let bindKey = ProfileGrammar("a bind key: 32 hexadecimal digits") { text in
        Hexadecimal.octets(text).flatMap { BindKey($0) }
    }
}

extension ProfileGrammar<BluetoothAddress> {
    static let address = ProfileGrammar("an address such as C0:FF:EE:00:00:01") { BluetoothAddress($0) }
}
