import GattherdDelivery
import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit
import Testing

/// A base topic of several levels, on a real broker.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct BaseTopicTests {
    private static let base = "acme/site-1/lab"
    private static let addresses = ["strap": "C0:FF:EE:00:00:01", "lamp": "C0:FF:EE:00:00:02"]

    private func delivery(_ fixture: DeliveryFixture, _ name: String = "lab") -> MQTTDelivery {
        fixture.delivery { settings in
            settings.baseTopic = Self.base
            settings.clientID = "gattherd-\(name)"
        }
    }

    @Test func `states, readings, requests and discovery are below the base topic`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = delivery(fixture)
        delivery.enrol(Self.addresses)
        delivery.update(DeliveryFixture.status("strap", .ready))
        delivery.describe(DeviceDescription(device: "strap", address: "C0:FF:EE:00:00:01", streams: []))
        try await delivery.running {
            await subscriber.messages { $0.contains { $0.topic == "\(Self.base)/bridge/state" } }
            fixture.log.commit(1, device: "strap")
            await fixture.log.waitForCursor(1)
            try await fixture.broker.publish("5", to: "\(Self.base)/strap/number/set")
            let all = await subscriber.messages { $0.contains { $0.topic == "\(Self.base)/strap/number/result" } }
            #expect(all.contains { $0.topic == "\(Self.base)/strap/heart_rate" })
            let discovery = all.last { $0.topic == "homeassistant/device/gattherd_lab_c0ffee000001/config" }
            #expect(discovery?.payload.contains("\(Self.base)/strap/availability") == true)
            #expect(!all.contains { $0.topic.hasPrefix("gattherd/") })
        }
    }

    @Test func `the last will is below the base topic`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker, to: "\(Self.base)/bridge/state")
        let first = delivery(fixture)
        await first.running {
            await subscriber.messages { $0.last?.payload == "online" }
            // The second session of a client identifier ends the first.
            let second = delivery(fixture)
            await second.running { await subscriber.messages { $0.contains { $0.payload == "offline" } } }
        }
    }

    @Test func `a device that left the configuration is cleared below the base topic`() async throws {
        let fixture = try await DeliveryFixture.started()
        let first = delivery(fixture)
        first.enrol(Self.addresses)
        first.update(DeliveryFixture.status("lamp", .ready))
        first.describe(DeviceDescription(device: "lamp", address: "C0:FF:EE:00:00:02", streams: []))
        await first.running {
            fixture.log.commit(1, device: "lamp")
            await fixture.log.waitForCursor(1)
        }
        let watcher = try await Subscriber(fixture.broker)
        let second = delivery(fixture)
        second.enrol(["strap": "C0:FF:EE:00:00:01"])
        let topics =
            ["availability", "connection", "heart_rate"].map { "\(Self.base)/lamp/\($0)" }
            + ["homeassistant/device/gattherd_lab_c0ffee000002/config"]
        await second.running {
            await watcher.messages { messages in
                topics.allSatisfy { topic in messages.contains { $0.topic == topic && $0.payload.isEmpty } }
            }
        }
    }

    /// Publishes readings and states below another base topic, and stops.
    private func useFormerBase(_ fixture: DeliveryFixture) async {
        let first = fixture.delivery { $0.baseTopic = "old/base" }
        first.enrol(Self.addresses)
        first.update(DeliveryFixture.status("lamp", .ready))
        await first.running {
            fixture.log.commit(1, device: "lamp")
            await fixture.log.waitForCursor(1)
        }
    }

    private func delivery(
        _ fixture: DeliveryFixture,
        former: String,
        _ forgotten: LatestValue<String>
    ) -> MQTTDelivery {
        fixture.delivery { settings in
            settings.baseTopic = Self.base
            settings.clientID = "new"
            settings.formerBases = [former]
            settings.formerBasePause = .seconds(1)
            settings.forgetBase = { forgotten.set($0) }
        }
    }

    @Test func `messages below a former base topic are cleared, the state last, and no others`() async throws {
        let fixture = try await DeliveryFixture.started()
        await useFormerBase(fixture)
        for topic in ["old/base/other/x", "old/other/lamp/availability"] {
            try await fixture.broker.publish("online", to: topic, retained: true)
        }
        let watcher = try await Subscriber(fixture.broker, to: "old/#")
        let forgotten = LatestValue("")
        await delivery(fixture, former: "old/base", forgotten).running {
            await watcher.messages { $0.contains { $0.topic == "old/base/bridge/state" && $0.payload.isEmpty } }
            for await base in forgotten.watch() where base == "old/base" { break }
        }
        let cleared = watcher.messages.filter(\.payload.isEmpty).map(\.topic)
        let topics = ["lamp/connection", "lamp/heart_rate", "lamp/availability", "bridge/state"]
        #expect(Set(cleared).isSuperset(of: topics.map { "old/base/\($0)" }))
        #expect(cleared.last == "old/base/bridge/state")
        let late = try await Subscriber(fixture.broker, to: "old/#")
        try await fixture.broker.publish("end", to: "old/end")
        let rest = await late.messages { $0.contains { $0.topic == "old/end" } }
        #expect(Set(rest.map(\.topic)) == ["old/base/other/x", "old/other/lamp/availability", "old/end"])
    }

    /// With the default base topic a new name is a new base topic, too.
    @Test(arguments: ["gattherd/annex", "gattherd/lab"])
    func `a renamed gateway clears the discovery payloads of its former name`(base: String) async throws {
        let fixture = try await DeliveryFixture.started()
        let strap = DeviceDescription(device: "strap", address: "C0:FF:EE:00:00:01", streams: [])
        func delivery(_ gateway: String, _ base: String, former: [String] = []) -> MQTTDelivery {
            let delivery = fixture.delivery { settings in
                (settings.gateway, settings.baseTopic, settings.clientID) = (gateway, base, gateway)
                (settings.formerBases, settings.formerBasePause) = (former, .milliseconds(300))
            }
            delivery.enrol(["strap": strap.address])
            delivery.update(DeliveryFixture.status("strap", .ready))
            delivery.describe(strap)
            return delivery
        }
        let subscriber = try await Subscriber(fixture.broker, to: "homeassistant/#")
        let old = ["gattherd_lab_gateway", "gattherd_lab_c0ffee000001"].map { "homeassistant/device/\($0)/config" }
        await delivery("lab", "gattherd/lab").running {
            await subscriber.messages { messages in Set(messages.map(\.topic)).isSuperset(of: old) }
        }
        await delivery("annex", base, former: base == "gattherd/lab" ? [] : ["gattherd/lab"]).running {
            await subscriber.messages { messages in
                old.allSatisfy { topic in messages.contains { $0.topic == topic && $0.payload.isEmpty } }
            }
        }
        #expect(!subscriber.messages.contains { $0.topic.contains("annex") && $0.payload.isEmpty })
    }

    @Test func `a former base topic that another gateway uses is not cleared`() async throws {
        let fixture = try await DeliveryFixture.started()
        await useFormerBase(fixture)
        try await fixture.broker.publish("online", to: "old/base/bridge/state", retained: true)
        let watcher = try await Subscriber(fixture.broker, to: "old/#")
        let forgotten = LatestValue("")
        await delivery(fixture, former: "old/base", forgotten).running {
            for await base in forgotten.watch() where base == "old/base" { break }
        }
        #expect(watcher.messages.allSatisfy { !$0.payload.isEmpty })
    }

    @Test func `former base topics are kept for a broker until they are removed`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("bases")
        #expect(BaseTopicFile(path: path).use("a/b", at: "mqtt://one:1883") == [])
        #expect(BaseTopicFile(path: path).use("c d", at: "mqtt://one:1883") == ["a/b"])
        let file = BaseTopicFile(path: path)
        #expect(file.use("e", at: "mqtt://one:1883") == ["c d", "a/b"])
        file.forget("c d")
        #expect(BaseTopicFile(path: path).use("e", at: "mqtt://one:1883") == ["a/b"])
        #expect(BaseTopicFile(path: path).use("a", at: "mqtt://one:1883") == ["e"], "a tree below the new base topic")
        #expect(BaseTopicFile(path: path).use("f", at: "mqtt://two:1883") == [])
        for text in ["", "x", "mqtt://one:1883 ", "mqtt://one:1883 a/#", "\0\n\n \n"] {
            try folder.write(text, to: "bases")
            #expect(BaseTopicFile(path: path).use("e", at: "mqtt://one:1883") == [])
        }
    }

    @Test func `another gateway with the same base topic is recorded`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let (first, second) = (delivery(fixture, "one"), delivery(fixture, "two"))
        first.enrol(Self.addresses)
        try await first.running {
            await subscriber.messages { $0.contains { $0.topic == "\(Self.base)/bridge/state" } }
            second.enrol(Self.addresses)
            second.update(DeliveryFixture.status("strap", .ready))
            try await second.running {
                await subscriber.messages { $0.count { $0.topic == "\(Self.base)/bridge/state" } == 2 }
                // Both answer, so the first one has received everything before.
                try await fixture.broker.publish("5", to: "\(Self.base)/strap/number/set")
                await subscriber.messages { $0.count { $0.topic == "\(Self.base)/strap/number/result" } == 2 }
            }
        }
        let found = fixture.events.withLock { $0.filter { $0.contains("base_topic_in_use") } }
        #expect(found == [#"{"state":"base_topic_in_use","topic":"\#(Self.base)/strap/availability"}"#])
    }
}
