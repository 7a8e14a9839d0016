import GattherdDelivery
import GattherdMachines
import GattherdModel
import TestKit
import Testing

@Suite(.serialized, .timeLimit(.minutes(3)))
struct DiscoveryTests {
    private static let addresses = ["strap": "C0:FF:EE:00:00:01", "lamp": "C0:FF:EE:00:00:02"]

    private static let gateway = "homeassistant/device/gattherd_lab_gateway/config"

    private func description(_ device: String, address: String? = nil) -> DeviceDescription {
        let stream = DeviceDescription.Stream(name: "battery", metrics: [MetricDescriptor(name: "level", unit: "%")])
        return DeviceDescription(device: device, address: address ?? Self.addresses[device] ?? "", streams: [stream])
    }

    private func topic(_ address: String) -> String {
        "homeassistant/device/gattherd_lab_\(address.lowercased().filter { $0 != ":" })/config"
    }

    private func topic(of device: String) -> String { topic(Self.addresses[device] ?? "") }

    /// Runs a delivery with both devices, so that the broker has their retained messages.
    private func leaveBehind(_ fixture: DeliveryFixture) async throws {
        let delivery = fixture.delivery { $0.options.subscriberTimeout = .zero }
        delivery.enrol(Self.addresses)
        for device in Self.addresses.keys {
            delivery.update(DeliveryFixture.status(device, .ready))
            delivery.describe(description(device))
        }
        await delivery.running {
            fixture.log.commit(1, device: "lamp")
            await fixture.log.waitForCursor(1)
        }
    }

    @Test func `a description is retained, and published again when Home Assistant starts`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery()
        delivery.enrol(Self.addresses)
        delivery.update(DeliveryFixture.status("strap", .ready))
        try await delivery.running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            delivery.describe(description("strap"))
            delivery.describe(description("strap"))
            let once = await subscriber.messages { $0.contains { $0.topic == topic(of: "strap") } }
            #expect(once.last { $0.topic == topic(of: "strap") }?.contentType == "application/json")
            try await fixture.broker.publish("online", to: "homeassistant/status")
            let again = await subscriber.messages { $0.count { $0.topic == topic(of: "strap") } >= 2 }
            #expect(again.count { $0.topic == topic(of: "strap") } == 2)
        }
        let late = try await Subscriber(fixture.broker, to: "homeassistant/#")
        await late.messages { $0.contains { $0.topic == topic(of: "strap") && $0.isRetained } }
    }

    @Test func `a broker that lost its retained messages receives the descriptions again`() async throws {
        let fixture = try await DeliveryFixture.started()
        let delivery = fixture.delivery()
        delivery.describe(description("strap"))
        try await delivery.running {
            await delivery.wait(for: .connected)
            await fixture.broker.kill()
            _ = await delivery.waitForFault()
            try await fixture.broker.start()
            let subscriber = try await Subscriber(fixture.broker)
            await subscriber.messages { $0.contains { $0.topic == topic(of: "strap") } }
        }
    }

    @Test func `the next run clears all messages of a device that left the configuration`() async throws {
        let fixture = try await DeliveryFixture.started()
        try await leaveBehind(fixture)
        let foreign = [
            "homeassistant/device/other/config", "homeassistant/device/gattherd_other_c0ffee000002/config",
            "gattherd/other/lamp/availability",
        ]
        for topic in foreign { try await fixture.broker.publish("{}", to: topic, retained: true) }
        let watcher = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery()
        delivery.enrol(["strap": "C0:FF:EE:00:00:01"])
        delivery.update(DeliveryFixture.status("strap", .waiting))
        let own = ["availability", "connection", "heart_rate"].map { "gattherd/lab/lamp/\($0)" } + [topic(of: "lamp")]
        await delivery.running {
            let all = await watcher.messages { messages in
                own.allSatisfy { topic in messages.contains { $0.topic == topic && $0.payload.isEmpty } }
            }
            #expect(Set(all.filter { $0.payload.isEmpty }.map(\.topic)) == Set(own))
        }
        let late = try await Subscriber(fixture.broker)
        let wanted = foreign + [topic(of: "strap")]
        let kept = await late.messages { messages in
            wanted.allSatisfy { topic in messages.contains { $0.topic == topic } }
        }
        #expect(!kept.contains { own.contains($0.topic) })
    }

    @Test func `a device with a new address is described again, and its old description is cleared`() async throws {
        let fixture = try await DeliveryFixture.started()
        try await leaveBehind(fixture)
        let watcher = try await Subscriber(fixture.broker, to: "homeassistant/#")
        let delivery = fixture.delivery()
        var addresses = Self.addresses
        addresses["lamp"] = "C0:FF:EE:00:00:03"
        delivery.enrol(addresses)
        await delivery.running {
            await watcher.messages { $0.contains { $0.topic == topic(of: "lamp") && $0.payload.isEmpty } }
            delivery.describe(description("lamp", address: "C0:FF:EE:00:00:03"))
            let all = await watcher.messages { $0.contains { $0.topic == topic("C0:FF:EE:00:00:03") } }
            #expect(!all.contains { $0.topic == topic(of: "strap") && $0.payload.isEmpty })
        }
    }

    @Test func `a renamed device keeps its description until it is described again`() async throws {
        let fixture = try await DeliveryFixture.started()
        try await leaveBehind(fixture)
        let watcher = try await Subscriber(fixture.broker, to: "homeassistant/#")
        let delivery = fixture.delivery()
        let address = Self.addresses["lamp"] ?? ""
        delivery.enrol(["strap": "C0:FF:EE:00:00:01", "bulb": address])
        delivery.remove(device: "lamp")
        await delivery.running {
            await delivery.wait(for: .connected)
            delivery.describe(description("bulb", address: address))
            let all = await watcher.messages { messages in
                messages.contains { $0.topic == topic(of: "lamp") && $0.payload.contains("lab/bulb/availability") }
            }
            #expect(!all.contains { $0.topic == topic(of: "lamp") && $0.payload.isEmpty })
        }
    }

    @Test func `the gateway is described before its devices`() async throws {
        let fixture = try await DeliveryFixture.started()
        let watcher = try await Subscriber(fixture.broker, to: "homeassistant/#")
        let delivery = fixture.delivery()
        delivery.describe(description("strap"))
        await delivery.running {
            let all = await watcher.messages { $0.contains { $0.topic == topic(of: "strap") } }
            #expect(all.first?.topic == Self.gateway)
        }
    }

    @Test func `without discovery, existing descriptions are cleared and none is published`() async throws {
        let fixture = try await DeliveryFixture.started()
        try await leaveBehind(fixture)
        let watcher = try await Subscriber(fixture.broker, to: "homeassistant/#")
        let delivery = fixture.delivery { $0.homeAssistant.isDiscoverable = false }
        delivery.enrol(Self.addresses)
        delivery.describe(description("strap"))
        try await delivery.running {
            let topics = Set(Self.addresses.keys.map { topic(of: $0) } + [Self.gateway])
            await watcher.messages { Set($0.filter { $0.payload.isEmpty }.map(\.topic)) == topics }
            try await fixture.broker.publish("end", to: "homeassistant/end")
            let all = await watcher.messages { $0.contains { $0.topic == "homeassistant/end" } }
            #expect(all.count { !$0.payload.isEmpty && !$0.isRetained } == 1)
        }
    }

    @Test func `a device removed at run time disappears from Home Assistant`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery()
        delivery.update(DeliveryFixture.status("strap", .ready))
        delivery.describe(description("strap"))
        await delivery.running {
            await subscriber.messages { $0.contains { $0.topic == topic(of: "strap") } }
            delivery.remove(device: "strap")
            await subscriber.messages { $0.contains { $0.topic == topic(of: "strap") && $0.payload.isEmpty } }
        }
    }
}
