import GattherdMQTT
import Testing

@testable import GattherdSparkplug

@Suite struct HostMessageTests {
    private static let topics = SparkplugTopics(group: "plant", node: "gateway", primaryHost: "scada")

    private static func meaning(
        _ topic: String,
        _ payload: [UInt8],
        length: Int? = nil,
        isRetained: Bool = false
    ) -> HostMessage {
        let length = length ?? payload.count
        return HostMessage(
            BrokerMessage(topic: topic, payload: payload, length: length, isRetained: isRetained),
            topics
        )
    }

    @Test func `only STATE may be retained`() {
        #expect(Self.meaning("spBv1.0/STATE/scada", [1], isRetained: true) == .state([1]))
        for topic in [Self.topics.nodeCommand, "spBv1.0/plant/DCMD/gateway/strap"] {
            #expect(Self.meaning(topic, [], isRetained: true) == .invalid("it is retained"))
        }
    }

    @Test func `a topic without subscription is unrelated`() {
        #expect(Self.meaning("spBv1.0/plant/DCMD/other/strap", []) == .unrelated)
        #expect(Self.meaning("", [], length: 9) == .unrelated)
    }

    @Test func `a message that is cut off or damaged is invalid`() {
        guard case .invalid(let reason) = Self.meaning(Self.topics.nodeCommand, [1], length: 9000) else {
            Issue.record("it is valid")
            return
        }
        #expect(reason.contains("9000 bytes"))
        guard case .invalid = Self.meaning(Self.topics.nodeCommand, [0xFF, 0xFF]) else {
            Issue.record("it is valid")
            return
        }
    }

    @Test func `a command names its device, and one to the node asks for a rebirth or nothing`() {
        #expect(
            Self.meaning("spBv1.0/plant/DCMD/gateway/strap", []) == .command(SparkplugPayload(), device: "strap")
        )
        #expect(Self.meaning(Self.topics.nodeCommand, []) == .invalid("it asks for no rebirth"))
    }
}

@Suite struct DelayedDeathsTests {
    @Test func `a death is due after the delay, unless the link comes back`() {
        var deaths = DelayedDeaths(delay: .seconds(1))
        deaths.add("strap", at: .zero)
        deaths.add("tag", at: .milliseconds(500))
        deaths.add("box", at: .milliseconds(500))
        #expect(deaths.deadline == .seconds(1))
        deaths.cancel("strap")
        var due = deaths.removeDue(at: .seconds(1))
        #expect(due.isEmpty && deaths.devices == ["tag", "box"])
        due = deaths.removeDue(at: .milliseconds(1500))
        #expect(due == ["box", "tag"] && deaths.deadline == nil)
    }
}
