import GattherdMQTT
import Testing

@testable import GattherdSparkplug

/// A requirement of the Sparkplug specification, version 3.0, for edge nodes, and its check on a captured run.
struct Requirement: Sendable, CustomTestStringConvertible {
    /// The id without `tck-id-`.
    let id: String
    let rule: String
    let check: @Sendable (WireCapture) throws -> Void

    init(_ id: String, _ rule: String, _ check: @escaping @Sendable (WireCapture) throws -> Void) {
        self.id = id
        self.rule = rule
        self.check = check
    }

    var testDescription: String { "\(rule) (tck-id-\(id))" }
}

/// Chapters 4 to 6 of the specification, on all packets of a run, with both versions of MQTT.
///
/// Requirements for hosts and brokers, and those for data sets, templates and multiple brokers, which this edge node
/// does not have, are left out.
@Suite(.timeLimit(.minutes(2))) struct RequirementTests {
    static let versions = [MQTTVersion.v311, .v5]

    @Test(arguments: Requirement.topics, versions)
    func `topics and messages meet their requirements`(requirement: Requirement, version: MQTTVersion) async throws {
        try requirement.check(await .shared(version))
    }

    @Test(arguments: Requirement.operation, versions)
    func `the operation meets its requirements`(requirement: Requirement, version: MQTTVersion) async throws {
        try requirement.check(await .shared(version))
    }

    @Test(arguments: Requirement.payloads, versions)
    func `payloads meet their requirements`(requirement: Requirement, version: MQTTVersion) async throws {
        try requirement.check(await .shared(version))
    }

    @Test func `no requirement is checked twice`() {
        let ids = (Requirement.topics + Requirement.operation + Requirement.payloads).map(\.id)
        #expect(Set(ids).count == ids.count)
    }
}

/// Parts that the checks have in common.
extension WireCapture {
    /// The messages of a type, at least one.
    func messages(_ type: String) throws -> [Publish] {
        let messages = publishes.filter { $0.type == type }
        try #require(!messages.isEmpty)
        return messages
    }

    /// Expects a condition of all messages of a type.
    func expect(_ type: String, _ condition: (Publish) -> Bool) throws {
        for message in try messages(type) { #expect(condition(message), "\(message.topic)") }
    }

    /// Expects the topic `spBv1.0/group/type/node`, with a device or without.
    func expectTopic(_ type: String, hasDevice: Bool) throws {
        let base = "spBv1.0/\(Self.group)/\(type)/\(Self.node)"
        try expect(type) { hasDevice ? ["\(base)/strap", "\(base)/lamp"].contains($0.topic) : $0.topic == base }
    }

    func expectQoS0(_ type: String) throws {
        try expect(type) { $0.qos == 0 && !$0.isRetained }
    }

    func expectTimestamp(_ type: String) throws {
        try expect(type) { ($0.payload.timestamp ?? 0) > 1_600_000_000_000 }
    }

    /// Expects numbers that continue those of the message before, whatever its type.
    func expectNextSeq(_ type: String) throws {
        _ = try messages(type)
        var last: UInt64?
        for message in publishes where message.type != "NDEATH" {
            if message.type == type { #expect(message.payload.seq == last.map { ($0 + 1) % 256 }) }
            last = message.payload.seq
        }
    }

    /// The bdSeq of a payload.
    static func bdSeq(_ payload: SparkplugPayload) -> UInt64? {
        guard case .long(let number)? = payload.metrics.first(where: { $0.name == "bdSeq" })?.value else { return nil }
        return number
    }

    /// The wills of the connections.
    var wills: [SparkplugPayload] {
        get throws { try connects.map { try SparkplugPayload(decoding: $0.will[...]) } }
    }

    /// The metrics of all births, with the message's type.
    func births(_ type: String) throws -> [SparkplugMetric] { try messages(type).flatMap(\.payload.metrics) }

    /// The values of a device's metric in data, in order.
    func values(of name: String) throws -> [SparkplugMetric] {
        let alias = try #require(births("DBIRTH").first { $0.name == name }?.alias)
        return try messages("DDATA").flatMap(\.payload.metrics).filter { $0.alias == alias }
    }

    /// The metrics of all births and data messages.
    var allMetrics: [SparkplugMetric] {
        publishes.filter { $0.type.hasSuffix("BIRTH") || $0.type.hasSuffix("DATA") }.flatMap(\.payload.metrics)
    }

    var rebirthMetrics: [SparkplugMetric] {
        get throws { try births("NBIRTH").filter { $0.name == "Node Control/Rebirth" } }
    }

    /// The position of the first message of a type after a position.
    func position(of type: String, after start: Int = 0) throws -> Int {
        try #require(publishes.first { $0.type == type && $0.position >= start }?.position)
    }
}
