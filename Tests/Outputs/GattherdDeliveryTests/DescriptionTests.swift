import GattherdDelivery
import GattherdGATT
import GattherdMachines
import GattherdModel
import TestKit
import Testing

/// The retained self-descriptions of devices, on a real broker.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct DescriptionTests {
    private static let address = "C0:FF:EE:00:00:01"
    private static let payload =
        #"{"schema":1,"device":"strap","address":"C0:FF:EE:00:00:01","profiles":["heart-rate"],"#
        + #""streams":[{"name":"heart_rate","topic":"gattherd/lab/strap/heart_rate","batch":false,"metrics":["#
        + #"{"name":"heart_rate","unit":"bpm","kind":"gauge","repeated":false},"#
        + #"{"name":"rr_interval","unit":"s","kind":"gauge","repeated":true}]}],"#
        + #""controls":[{"name":"level","topic":"gattherd/lab/strap/level/set","#
        + #""result":"gattherd/lab/strap/level/result","type":"integer","min":0,"max":9,"step":1,"unit":"%","#
        + #""stream":"heart_rate"},{"name":"mode","topic":"gattherd/lab/strap/mode/set","#
        + #""result":"gattherd/lab/strap/mode/result","type":"choice","options":["off","on"],"unit":null,"#
        + #""stream":null}]}"#

    private var description: DeviceDescription {
        let metrics = [
            MetricDescriptor(name: "heart_rate", unit: "bpm"),
            MetricDescriptor(name: "rr_interval", unit: "s", isRepeated: true),
        ]
        let controls = [
            ControlDescriptor(
                name: "level",
                kind: .integer(0...9),
                characteristic: 0x2A39,
                unit: "%",
                echo: "heart_rate"
            ),
            ControlDescriptor(name: "mode", kind: .choice(["off", "on"]), characteristic: 0x2A39),
        ]
        return DeviceDescription(
            device: "strap",
            address: Self.address,
            streams: [.init(name: "heart_rate", metrics: metrics)],
            controls: controls,
            profiles: ["heart-rate"]
        )
    }

    private func delivery(
        _ fixture: DeliveryFixture,
        _ change: (inout DeliverySettings) -> Void = { _ in }
    ) -> MQTTDelivery {
        let delivery = fixture.delivery { settings in
            settings.publishesDescriptions = true
            settings.homeAssistant.isDiscoverable = false
            change(&settings)
        }
        delivery.enrol(["strap": Self.address])
        delivery.update(DeliveryFixture.status("strap", .ready))
        return delivery
    }

    @Test func `a device describes its streams and controls in a retained message`() async throws {
        let fixture = try await DeliveryFixture.started()
        let delivery = delivery(fixture)
        delivery.describe(description)
        try await delivery.running {
            await delivery.wait(for: .connected)
            let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/strap/#")
            let all = await subscriber.messages { $0.last(on: "strap/description") != nil }
            #expect(all.last(on: "strap/description") == Self.payload)
        }
        let late = try await Subscriber(fixture.broker, to: "gattherd/lab/strap/description")
        let kept = await late.messages { !$0.isEmpty }
        #expect(kept.map(\.isRetained) == [true])
        #expect(kept.map(\.contentType) == ["application/json"])
    }

    @Test func `a changed description is published, an unchanged one is not`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/strap/description")
        let delivery = delivery(fixture)
        delivery.describe(description)
        await delivery.running {
            await subscriber.messages { $0.count == 1 }
            delivery.describe(description)
            var changed = description
            changed.streams = []
            delivery.describe(changed)
            let all = await subscriber.messages { $0.contains { $0.payload.contains(#""streams":[]"#) } }
            #expect(all.count == 2)
        }
    }

    @Test func `a control that MQTT may not set is left out, also after a reload`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/strap/description")
        let delivery = delivery(fixture)
        delivery.describe(description)
        await delivery.running {
            await subscriber.messages { $0.count == 1 }
            var permissions = ControlPermissions()
            permissions.isEverythingAllowed = false
            delivery.apply(PublishingRules(), permissions)
            let all = await subscriber.messages { $0.count == 2 }
            #expect(all.last?.payload.hasSuffix(#""controls":[]}"#) == true)
        }
    }

    @Test func `the description is cleared when the device is removed`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/strap/description")
        let delivery = delivery(fixture)
        delivery.describe(description)
        await delivery.running {
            await subscriber.messages { $0.count == 1 }
            delivery.remove(device: "strap")
            await subscriber.messages { $0.last?.payload.isEmpty == true }
        }
    }

    @Test func `with descriptions turned off none is published, and those of earlier runs are cleared`() async throws {
        let fixture = try await DeliveryFixture.started()
        let first = delivery(fixture)
        first.describe(description)
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/strap/description")
        await first.running { await subscriber.messages { $0.count == 1 } }
        let second = delivery(fixture) { $0.publishesDescriptions = false }
        second.describe(description)
        await second.running {
            let all = await subscriber.messages { $0.count == 2 }
            #expect(all.last?.payload.isEmpty == true)
        }
    }

    @Test func `without leases the lease topics of earlier runs are cleared`() async throws {
        let fixture = try await DeliveryFixture.started()
        let first = delivery(fixture) { $0.hasLeases = true }
        first.update(DeviceLease(device: "strap", state: "owner", owner: "lab", epoch: 7))
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/strap/lease")
        await first.running { await subscriber.messages { $0.count == 1 } }
        await delivery(fixture).running {
            let all = await subscriber.messages { $0.count == 2 }
            #expect(all.last?.payload.isEmpty == true)
        }
    }

    @Test func `the lease of a device is retained, with the epoch that controls may name`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/strap/lease")
        let delivery = delivery(fixture) { $0.hasLeases = true }
        delivery.update(DeviceLease(device: "strap", state: "owner", owner: "lab", epoch: 7))
        await delivery.running {
            await subscriber.messages { $0.count == 1 }
            delivery.update(DeviceLease(device: "strap", state: "standby", owner: nil, epoch: 7))
            let all = await subscriber.messages { $0.count == 2 }
            let payloads = [
                #"{"state":"owner","owner":"lab","epoch":7}"#, #"{"state":"standby","owner":null,"epoch":7}"#,
            ]
            #expect(all.map(\.payload) == payloads)
            delivery.remove(device: "strap")
            await subscriber.messages { $0.last?.payload.isEmpty == true }
        }
        let late = try await Subscriber(fixture.broker, to: "gattherd/lab/#")
        let kept = await late.messages { $0.contains { $0.topic == "gattherd/lab/bridge/state" } }
        #expect(!kept.contains { $0.topic.hasSuffix("/lease") && !$0.payload.isEmpty })
    }
}
