import GattherdMQTT
import Testing

@testable import GattherdDelivery

@Suite struct TopicsTests {
    private let topics = Topics(base: "gattherd/lab")

    static let requests: [(String, Topics.Request?)] = [
        ("gattherd/lab/lamp/number/set", .set(device: "lamp", control: "number")),
        ("gattherd/lab/bridge/request/health", .bridge(verb: "health")),
        ("gattherd/lab/bridge/request/set", .bridge(verb: "set")),
        ("gattherd/lab/lamp/number/result", nil), ("gattherd/lab/lamp/set", nil),
        ("gattherd/other/lamp/number/set", nil),
        ("gattherd/lab/lamp/\u{301}number/set", .set(device: "lamp", control: "\u{301}number")),
        ("gattherd/lab/a/b/c/set", nil), ("gattherd/lab", nil), ("", nil), ("///", nil),
    ]

    @Test(arguments: requests)
    func `requests are recognised by their topics`(topic: String, request: Topics.Request?) {
        #expect(topics.request(topic) == request)
    }

    @Test func `the device of a topic is recognised`() {
        #expect(topics.device("gattherd/lab/lamp/number") == "lamp")
        #expect(topics.device("gattherd/lab/lamp/number/value") == "lamp")
        #expect(topics.device("gattherd/lab/bridge/state") == nil)
        #expect(topics.device("gattherd/lab/lamp") == nil)
        #expect(topics.device("elsewhere/lamp/number") == nil)
    }

    @Test func `a base topic may have any number of levels`() {
        for base in ["lab", "a/b/lab-1", "öl/1"] {
            let topics = Topics(base: base)
            #expect(topics.state == "\(base)/bridge/state")
            #expect(topics.request("\(base)/lamp/number/set") == .set(device: "lamp", control: "number"))
            #expect(topics.request("\(base)/bridge/request/health") == .bridge(verb: "health"))
            #expect(topics.request("gattherd/lab/lamp/number/set") == nil)
            #expect(topics.device("\(base)/lamp/number") == "lamp")
            #expect(topics.device("\(base)/bridge/state") == nil)
            #expect(topics.isAvailability("\(base)/lamp/availability"))
            #expect(!topics.isAvailability("\(base)/lamp/number"))
        }
    }

    @Test func `a response stays out of the trees of gateways and of Home Assistant`() {
        let topics = Topics(base: "acme/site/lab-1")
        let good = ["acme/site/lab-1/bridge/response/x", "backend/answers", "acmes/x"]
        let bad = [
            "acme/site/lab-1/lamp/number/set", "acme/site/lab-2/lamp/number/set", "acme/x", "gattherd/lab/lamp/x",
            "acme/site/lab-1/bridge/response/set", "homeassistant/status", "$SYS/x", "a/+", "",
            "acme/\u{301}site", "gattherd/\u{301}lab", "homeassistant/\u{301}status", "$\u{301}SYS/x",
            "a" + String(repeating: "/\u{301}", count: 20),
        ]
        for topic in good { #expect(topics.isAnswerable(topic, homePrefix: "homeassistant"), "\(topic)") }
        for topic in bad { #expect(!topics.isAnswerable(topic, homePrefix: "homeassistant"), "\(topic)") }
    }

    @Test func `a message without an answer has an alias only if the broker knows it`() {
        var aliases = TopicAliases()
        aliases.maximum = 1
        #expect(aliases.number(of: "a", isAcknowledged: false) == nil)
        #expect(aliases.number(of: "a", isAcknowledged: true)?.isKnown == false)
        #expect(aliases.number(of: "a", isAcknowledged: false) == nil)
        aliases.accepted("a")
        #expect(aliases.number(of: "a", isAcknowledged: false)?.isKnown == true)
        #expect(aliases.number(of: "b", isAcknowledged: true) == nil)
    }

    @Test func `no payload of a request traps the reader`() {
        var random = SystemRandomNumberGenerator()
        let alphabet = Array(#"{}[]",:\u0dD8e+-. 19tfn"#.utf8) + [0xC3, 0x00]
        for _ in 0..<5000 {
            let payload = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            }
            let message = BrokerMessage(topic: "", payload: payload, length: payload.count, isRetained: false)
            _ = try? RequestPayload(message).value("value")
        }
    }
}
