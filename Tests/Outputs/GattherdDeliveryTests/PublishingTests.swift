import GattherdDelivery
import GattherdLog
import GattherdMachines
import TestKit
import Testing

@Suite(.serialized, .timeLimit(.minutes(3)))
struct PublishingTests {
    /// Commits one reading each second, each with one temperature.
    private func commit(_ values: [String], to fixture: DeliveryFixture, stream: String = "air") {
        for value in values { fixture.log.commit(payload: value, device: "room", stream: stream) }
    }

    private func delivery(
        _ fixture: DeliveryFixture,
        _ version: DeliverySettings.Version = .v5,
        _ change: (inout StreamPublishing) -> Void
    ) -> MQTTDelivery {
        fixture.delivery(version) { settings in
            var rules = PublishingRules.Device(all: settings.publishing.all)
            var air = settings.publishing.all
            change(&air)
            rules.streams["air"] = air
            settings.publishing.devices["room"] = rules
        }
    }

    private func values(_ messages: [ReceivedMessage], _ topic: String) -> [String] {
        messages.filter { $0.topic == "gattherd/lab/room/" + topic }.map(\.payload)
    }

    @Test func `a policy suppresses readings of its stream only, and the cursor passes them`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = delivery(fixture) { rule in
            rule.policy.isOnChange = true
            rule.policy.deadband = 0.1
        }
        await delivery.running {
            let temperatures = ["20", "20.05", "20.2", "20.2", "null", "null"]
            commit(temperatures.map { "\"t\":\($0)" }, to: fixture)
            commit(["\"n\":1", "\"n\":1"], to: fixture, stream: "count")
            await fixture.log.waitForCursor(8)
            let messages = await subscriber.messages { values($0, "count").count == 2 }
            #expect(values(messages, "air").map { $0.split(separator: "\"t\":").last } == ["20}", "20.2}", "null}"])
            #expect(delivery.counters.suppressed.value == 3)
            #expect(delivery.deliveryStatus.backlog == 0)
        }
    }

    @Test func `the cursor moves on when all readings are suppressed`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = delivery(fixture) { $0.policy.minimumInterval = .seconds(86_400) }
        await delivery.running {
            commit((1...700).map { "\"t\":\($0)" }, to: fixture)
            await fixture.log.waitForCursor(700)
            let messages = await subscriber.messages { !values($0, "air").isEmpty }
            #expect(values(messages, "air").count == 1)
            #expect(delivery.counters.suppressed.value == 699)
        }
    }

    @Test(
        arguments: [DeliverySettings.Version.v5, .v311]
    )
    func `readings with QoS 0 arrive in order, and the cursor follows`(version: DeliverySettings.Version) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = delivery(fixture, version) { $0.isAcknowledged = false }
        await delivery.running {
            commit((1...500).map { "\"t\":\($0)" }, to: fixture)
            await fixture.log.waitForCursor(500)
            let messages = await subscriber.messages { values($0, "air").count == 500 }
            #expect(values(messages, "air").map { $0.split(separator: ":").last } == (1...500).map { "\($0)}" })
        }
    }

    @Test func `each metric has its own topic if configured, with the last value of a list`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = delivery(fixture) { $0.hasScalars = true }
        await delivery.running {
            let metrics = #""t":20.5,"ok":true,"label":"very \"hot\"","none":null,"rr":[0.5,0.75],"empty":[],"set":1"#
            commit([metrics], to: fixture)
            let messages = await subscriber.messages { values($0, "air").count == 1 }
            let expected = [
                "air/t": "20.5", "air/ok": "true", "air/label": "very \"hot\"", "air/none": "null", "air/rr": "0.75",
            ]
            for (topic, value) in expected { #expect(values(messages, topic) == [value]) }
            #expect(messages.allSatisfy { !$0.topic.hasSuffix("/empty") && !$0.topic.hasSuffix("/set") })
            let scalar = messages.first { $0.topic.hasSuffix("/t") }
            #expect(scalar?.contentType == "" && scalar?.user == "seq:1 ts:1970-01-01T00:00:01.000000Z")
        }
        let late = try await Subscriber(fixture.broker, to: "gattherd/lab/room/#")
        await late.messages { values($0, "air/t") == ["20.5"] }
    }

    @Test func `a stream may be published without retain and with an expiry`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = delivery(fixture) { rule in
            rule.isRetained = false
            rule.expiry = .seconds(3600)
        }
        await delivery.running {
            commit(["\"t\":1"], to: fixture)
            commit(["\"n\":1"], to: fixture, stream: "count")
            let messages = await subscriber.messages { values($0, "count").count == 1 }
            #expect(messages.first { $0.topic.hasSuffix("/air") }?.expiry == "3600")
            #expect(messages.first { $0.topic.hasSuffix("/count") }?.expiry == "")
        }
        let late = try await Subscriber(fixture.broker, to: "gattherd/lab/room/#")
        let kept = await late.messages { values($0, "count").count == 1 }
        #expect(values(kept, "air").isEmpty)
    }
}
