import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdDelivery

@Suite(.serialized, .timeLimit(.minutes(3)))
struct SessionTests {
    @Test(
        arguments: [DeliverySettings.Version.v5, .v311]
    )
    func `wrong credentials and an absent broker are different faults`(version: DeliverySettings.Version) async throws {
        let fixture = DeliveryFixture(try Broker(users: [("gateway", "secret")]))
        try await fixture.broker.start()
        let wrong = fixture.delivery(version) { settings in
            settings.username = "gateway"
            settings.password = Secret("guess")
        }
        await wrong.running {
            let fault = await wrong.waitForFault()
            #expect(fault?.kind == .credentials)
            #expect(fault?.detail.contains("mqtt.username") == true)
        }
        let right = fixture.delivery(version) { settings in
            settings.username = "gateway"
            settings.password = Secret("secret")
        }
        await right.running { await right.wait(for: .connected) }
    }

    @Test func `a fault and its end are one event each, however often the connection is retried`() async throws {
        let fixture = DeliveryFixture(try Broker())
        let delivery = fixture.delivery()
        try await delivery.running {
            for _ in 0..<3 {
                _ = await delivery.waitForFault()
                await delivery.wait(for: .connecting)
            }
            try await fixture.broker.start()
            await delivery.wait(for: .connected)
        }
        let events = fixture.events.withLock { $0 }
        #expect(events.count == 2)
        #expect(events.first?.hasPrefix(#"{"state":"unreachable","error":"#) == true)
        #expect(events.last == #"{"state":"connected","at":"localhost:\#(fixture.broker.port)"}"#)
    }

    @Test func `a broker that acknowledges nothing is reported as a configuration error`() async throws {
        let fixture = try await DeliveryFixture.started(settings: ["max_qos 0"])
        let delivery = fixture.delivery()
        await delivery.running {
            let fault = await delivery.waitForFault()
            #expect(fault?.kind == .session)
            #expect(fault?.detail.contains("max_qos") == true)
        }
    }

    @Test func `a broker that announces maximum QoS 0 is reported as a configuration error`() async throws {
        let broker = try FakeBroker { client, _ in
            client.accept(properties: [0x24, 0])
            _ = client.next()
        }
        let delivery = try broker.delivery(TestLog())
        await delivery.running {
            #expect(await delivery.waitForFault()?.kind == .session)
        }
    }

    @Test func `a broker whose packet limit is below the gateway's state is reported as a configuration error`()
        async throws
    {
        let broker = try FakeBroker { client, _ in
            client.accept(properties: [0x27, 0, 0, 0, 30])
            client.serve()
        }
        let log = TestLog()
        log.commit(300)
        let delivery = try broker.delivery(log)
        await delivery.running {
            let fault = await delivery.waitForFault()
            #expect(fault?.kind == .session)
            #expect(fault?.detail.contains("max_packet_size") == true)
        }
        #expect(delivery.counters.refused.value == 0)
    }

    @Test func `a broker without retained messages receives every reading and a will`() async throws {
        let fixture = try await DeliveryFixture.started(settings: ["retain_available false"])
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/#")
        fixture.log.commit(3)
        await fixture.delivery().running { await fixture.log.waitForCursor(3) }
        let messages = await subscriber.messages { $0.last(on: "bridge/state") == "offline" }
        #expect(messages.seqs == [1, 2, 3])
    }

    @Test func `a secret does not print`() {
        var settings = DeliverySettings(gateway: "lab", host: "localhost")
        settings.password = Secret("hunter2")
        var dumped = "\(settings)"
        dump(settings, to: &dumped)
        #expect(!dumped.contains("hunter2"))
        #expect(dumped.contains("***"))
    }

    @Test func `an unknown host is reported in words`() async throws {
        let fixture = DeliveryFixture(try Broker())
        let delivery = fixture.delivery(.v5, { $0.host = "no-such-host.invalid" })
        await delivery.running {
            let fault = await delivery.waitForFault()
            #expect(fault?.kind == .unreachable)
            #expect(fault?.detail.contains("no-such-host.invalid") == true)
        }
    }

    @Test func `state is retained before the gateway is online`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/#")
        let delivery = fixture.delivery()
        delivery.setInfo(Array("{\"version\":\"1\"}".utf8))
        delivery.update(DeliveryFixture.status("strap", .ready))
        delivery.update(DeliveryFixture.status("lamp", .connecting))
        await delivery.running {
            let messages = await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            #expect(
                messages.map { $0.topic.dropFirst("gattherd/lab/".count) } == [
                    "bridge/info", "lamp/connection", "lamp/availability", "strap/connection", "strap/availability",
                    "bridge/state",
                ]
            )
            #expect(messages.last(on: "strap/availability") == "online")
            #expect(messages.last(on: "lamp/availability") == "offline")
            #expect(messages.last(on: "lamp/connection")?.contains("\"state\":\"connecting\"") == true)
        }
    }

    @Test(arguments: [DeliverySettings.Version.v5, .v311])
    func `online is published again after a client has overwritten it`(version: DeliverySettings.Version) async throws {
        let fixture = try await DeliveryFixture.started()
        let delivery = fixture.delivery(version)
        try await delivery.running {
            let state = try await Subscriber(fixture.broker, to: "gattherd/lab/bridge/state")
            await state.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish("offline", to: "gattherd/lab/bridge/state", retained: true)
            await state.messages { $0.map(\.payload).suffix(2) == ["offline", "online"] }
        }
        let late = try await Subscriber(fixture.broker, to: "gattherd/lab/bridge/state")
        await late.messages { $0.map(\.payload) == ["offline"] }
    }

    @Test func `a broker that lost its retained messages receives the state again`() async throws {
        let fixture = try await DeliveryFixture.started()
        let delivery = fixture.delivery()
        delivery.update(DeliveryFixture.status("strap", .ready))
        try await delivery.running {
            await delivery.wait(for: .connected)
            await fixture.broker.kill()
            _ = await delivery.waitForFault()
            delivery.update(DeliveryFixture.status("strap", .backingOff))
            try await fixture.broker.start()
            let subscriber = try await Subscriber(fixture.broker)
            let messages = await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            #expect(messages.last(on: "strap/availability") == "offline")
            #expect(messages.last(on: "strap/connection")?.contains("backingOff") == true)
        }
    }

    @Test func `a state change is published at once, and availability only when it changes`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery()
        delivery.update(DeliveryFixture.status("strap", .connecting))
        await delivery.running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            for state in [LinkState.discovering, .preparing, .ready] {
                delivery.update(DeliveryFixture.status("strap", state))
                await subscriber.messages { $0.last(on: "strap/connection")?.contains(state.rawValue) == true }
            }
            let messages = await subscriber.messages { $0.last(on: "strap/availability") == "online" }
            #expect(messages.count(on: "strap/availability") == 2)
        }
    }

    @Test func `the broker publishes the will of a lost gateway, which is online after its return`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery()
        try await delivery.running {
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            try await fixture.broker.publish("".utf8, to: "nothing", "-i", "gattherd-lab")
            let messages = await subscriber.messages { $0.count(on: "bridge/state") >= 3 }
            let states = messages.filter { $0.topic == "gattherd/lab/bridge/state" }.map(\.payload)
            #expect(states.prefix(3) == ["online", "offline", "online"])
        }
    }

    @Test(arguments: [DeliverySettings.Version.v5, .v311])
    func `a clean stop publishes everything as offline`(version: DeliverySettings.Version) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery(version) { $0.stopPatiently() }
        for number in 0..<40 { delivery.update(DeliveryFixture.status("d\(number)", .ready)) }
        await delivery.running { await subscriber.messages { $0.last(on: "bridge/state") == "online" } }
        let messages = await subscriber.messages { $0.last(on: "bridge/state") == "offline" }
        for number in 0..<40 { #expect(messages.last(on: "d\(number)/availability") == "offline") }
        try await fixture.broker.publish("end", to: "end")
        let all = await subscriber.messages { $0.contains { $0.topic == "end" } }
        #expect(all.count(on: "bridge/state") == 2, "no will after a farewell")
    }

    @Test func `readings that are acknowledged together with the last state are delivered`() async throws {
        let seen = LatestValue(false)
        let broker = try FakeBroker { client, _ in
            client.accept()
            var withheld: [UInt8] = []
            while let packet = client.next() {
                if packet.isReading {
                    withheld += client.acknowledgement(of: packet)
                    seen.set(true)
                } else if packet.isAcknowledged, packet.topic.hasSuffix("/bridge/state"), packet.payload == "offline" {
                    client.send(withheld + client.acknowledgement(of: packet))
                } else {
                    client.answer(packet)
                }
            }
        }
        let log = TestLog()
        let delivery = try broker.delivery(log) { $0.stopPatiently() }
        log.commit(1)
        await delivery.running {
            for await isSeen in seen.watch() where isSeen { break }
        }
        #expect(log.cursor.state == 1)
    }

    @Test func `a cancelled task disconnects cleanly as well`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery()
        await withTaskGroup { group in
            group.addTask { await delivery.run() }
            await subscriber.messages { $0.last(on: "bridge/state") == "online" }
            group.cancelAll()
        }
        #expect(delivery.session.state == .stopped)
        await subscriber.messages { $0.last(on: "bridge/state") == "offline" }
    }

    @Test func `a stop is bounded although the broker is frozen`() async throws {
        let fixture = try await DeliveryFixture.started()
        let delivery = fixture.delivery(.v5, { $0.options.stopLimit = .milliseconds(100) })
        await delivery.running {
            await delivery.wait(for: .connected)
            fixture.broker.freeze()
        }
        #expect(delivery.session.state == .stopped)
    }

    @Test func `retained messages of a removed device are cleared, including readings`() async throws {
        let fixture = try await DeliveryFixture.started()
        let delivery = fixture.delivery { $0.options.subscriberTimeout = .zero }
        delivery.update(DeliveryFixture.status("strap", .ready))
        delivery.update(DeliveryFixture.status("lamp", .ready))
        try await delivery.running {
            fixture.log.commit(2)
            await fixture.log.waitForCursor(2)
            let watcher = try await Subscriber(fixture.broker, to: "gattherd/lab/strap/#")
            await watcher.messages { $0.count >= 3 }
            delivery.remove(device: "strap")
            let topics = Set(["availability", "connection", "heart_rate"].map { "gattherd/lab/strap/" + $0 })
            await watcher.messages { Set($0.filter { $0.payload.isEmpty }.map(\.topic)) == topics }
            let late = try await Subscriber(fixture.broker, to: "gattherd/lab/#")
            let kept = await late.messages { $0.last(on: "lamp/availability") == "online" }
            #expect(!kept.contains { $0.topic.hasPrefix("gattherd/lab/strap") })
        }
    }

    @Test func `readings of a replaced device of the same name are cleared in this session or the next`() async throws {
        let fixture = try await DeliveryFixture.started()
        let delivery = fixture.delivery { $0.options.subscriberTimeout = .zero }
        delivery.update(DeliveryFixture.status("strap", .ready))
        try await delivery.running {
            fixture.log.commit(2)
            await fixture.log.waitForCursor(2)
            let watcher = try await Subscriber(fixture.broker, to: "gattherd/lab/strap/#")
            await watcher.messages { $0.count >= 3 }
            delivery.remove(device: "strap")
            delivery.update(DeliveryFixture.status("strap", .connecting))
            await watcher.messages { $0.last(on: "strap/heart_rate")?.isEmpty == true }
            await watcher.messages { $0.last(on: "strap/availability") == "offline" }
            await watcher.messages { $0.last(on: "strap/connection")?.contains("connecting") == true }
        }
        try await fixture.broker.publish("old", to: "gattherd/lab/lamp/heart_rate", retained: true)
        let next = fixture.delivery()
        next.remove(device: "lamp")
        next.update(DeliveryFixture.status("lamp", .connecting))
        let watcher = try await Subscriber(fixture.broker, to: "gattherd/lab/lamp/#")
        await watcher.messages { $0.last(on: "lamp/heart_rate") == "old" }
        await next.running {
            await watcher.messages { $0.last(on: "lamp/heart_rate")?.isEmpty == true }
        }
    }

    @Test func `a late reading of a removed device is published without retain`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/lab/+/heart_rate")
        let delivery = fixture.delivery()
        delivery.enrol(["lamp": "C0:FF:EE:00:00:01"])
        fixture.log.commit(1)
        fixture.log.commit(1, device: "lamp")
        try await delivery.running {
            await fixture.log.waitForCursor(2)
            await subscriber.messages { $0.count == 2 }
            let late = try await Subscriber(fixture.broker, to: "gattherd/lab/+/heart_rate")
            try await fixture.broker.publish("end", to: "gattherd/lab/end/heart_rate")
            let seen = await late.messages { $0.contains { $0.payload == "end" } }
            #expect(seen.filter(\.isRetained).map(\.topic) == ["gattherd/lab/lamp/heart_rate"])
        }
    }

    @Test func `waiting readings of a device are not retained for another one that has its name now`() async throws {
        let (retained, mayAnswer) = (LatestValue<[Int64: Bool]>([:]), LatestValue(false))
        let broker = try FakeBroker { client, _ in
            client.accept()
            client.serve { packet in
                guard let seq = packet.seq else { return }
                retained.update { $0[seq] = packet.flags & 1 != 0 }
                while !mayAnswer.state { _ = client.hasMore(within: 10) }
            }
        }
        let log = TestLog()
        let delivery = try broker.delivery(log)
        delivery.enrol(["lamp": "C0:FF:EE:00:00:01"])
        log.commit(4, device: "lamp")
        await delivery.running {
            for await flags in retained.watch() where !flags.isEmpty { break }
            delivery.remove(device: "lamp")
            delivery.enrol(["lamp": "C0:FF:EE:00:00:02"])
            await delivery.roundTrip()
            log.commit(2, device: "lamp")
            mayAnswer.set(true)
            for await flags in retained.watch() where flags.count == 6 { break }
        }
        #expect(retained.state == [1: true, 2: false, 3: false, 4: false, 5: true, 6: true])
    }

    @Test func `state that a busy broker refuses is published again`() async throws {
        let attempts = LatestValue(0)
        let broker = try FakeBroker { client, _ in
            client.accept()
            while let packet = client.next() {
                let isAsked = packet.kind == .publish && packet.topic == "gattherd/lab/strap/availability"
                if isAsked { attempts.update { $0 += 1 } }
                client.answer(packet, reason: isAsked && attempts.state < 3 ? 0x97 : 0)
            }
        }
        let delivery = try broker.delivery(TestLog())
        delivery.update(DeliveryFixture.status("strap", .ready))
        await delivery.running {
            for await count in attempts.watch() where count == 3 { break }
        }
    }

    @Test func `lifecycle events are published, and those beyond the bound are counted`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery()
        let event = LifecycleEvent(
            time: Timestamp(microseconds: 0),
            device: "strap",
            kind: "link",
            ["to": .text("ready")]
        )
        for _ in 0..<1000 { delivery.announce(event) }
        await delivery.running {
            let messages = await subscriber.messages { $0.count(on: "bridge/event") >= 1 }
            #expect(
                messages.last(on: "bridge/event")
                    == #"{"ts":"1970-01-01T00:00:00.000000Z","device":"strap","kind":"link","detail":{"to":"ready"}}"#
            )
            let dropped = Int(delivery.counters.eventsDropped.value)
            #expect(dropped > 0)
            await subscriber.messages { $0.count(on: "bridge/event") == 1000 - dropped }
        }
    }
}
