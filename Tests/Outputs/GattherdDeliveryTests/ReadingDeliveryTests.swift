import GattherdDelivery
import GattherdLog
import GattherdMachines
import GattherdSync
import TestKit
import Testing

@Suite(.serialized, .timeLimit(.minutes(3)))
struct ReadingDeliveryTests {
    @Test(
        arguments: [DeliverySettings.Version.v5, .v311]
    )
    func `every reading arrives once, in order, byte for byte`(version: DeliverySettings.Version) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        await fixture.delivery(version).running {
            fixture.log.commit(500)
            await fixture.log.waitForCursor(500)
            let messages = await subscriber.messages { $0.seqs.count >= 500 }
            #expect(messages.seqs == Array(1...500))
            let topic = "gattherd/lab/strap/heart_rate"
            #expect(messages.contains { $0.topic == topic && $0.payload.hasPrefix("{\"seq\":7,") })
        }
    }

    @Test func `a backlog arrives completely although the broker drops messages beyond its queue`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        fixture.log.commit(4000)
        // A subscriber without processor time fills the broker's queue of 1000 messages only after a second.
        await fixture.delivery { $0.options.pace = TokenBucket(rate: 1000) }.running {
            let messages = await subscriber.messages { $0.seqs.count >= 4000 }
            #expect(messages.seqs == Array(1...4000))
        }
    }

    @Test func `a broker with a tiny queue passes everything on at a moderate rate`() async throws {
        let fixture = try await DeliveryFixture.started(settings: ["max_queued_messages 50", "max_inflight_messages 1"])
        let subscriber = try await Subscriber(fixture.broker)
        fixture.log.commit(150)
        // As above, the broker's queue is full only after a second.
        await fixture.delivery { $0.options.pace = TokenBucket(rate: 50, burst: 5) }.running {
            let messages = await subscriber.messages { $0.seqs.count >= 150 }
            #expect(messages.seqs == Array(1...150))
        }
    }

    @Test func `the content type of a reading is JSON with MQTT 5`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        await fixture.delivery().running {
            fixture.log.commit(1)
            let messages = await subscriber.messages { $0.seqs.count == 1 }
            #expect(messages.contains { $0.contentType == "application/json" })
        }
    }

    @Test(arguments: [true, false])
    func `readings are retained if configured`(isRetained: Bool) async throws {
        let fixture = try await DeliveryFixture.started()
        let delivery = fixture.delivery { settings in
            settings.publishing.all.isRetained = isRetained
            settings.options.subscriberTimeout = .zero
        }
        await delivery.running {
            fixture.log.commit(3)
            await fixture.log.waitForCursor(3)
        }
        let subscriber = try await Subscriber(fixture.broker)
        let messages = await subscriber.messages { $0.last(on: "bridge/state") != nil }
        try await fixture.broker.publish("end", to: "end")
        let all = await subscriber.messages { $0.contains { $0.topic == "end" } }
        #expect(all.seqs == (isRetained ? [3] : []))
        #expect(messages.last(on: "bridge/state") == "offline")
    }

    @Test func `a broker that is absent at the start receives everything later`() async throws {
        let fixture = DeliveryFixture(try Broker())
        let delivery = fixture.delivery { $0.waitInEarnest() }
        try await delivery.running {
            fixture.log.commit(50)
            let fault = await delivery.waitForFault()
            #expect(fault?.kind == .unreachable)
            #expect(delivery.deliveryStatus.lastError?.contains("Connection refused") == true)
            try await fixture.broker.start()
            let subscriber = try await Subscriber(fixture.broker)
            let messages = await subscriber.messages { $0.seqs.count >= 50 }
            #expect(messages.firstSeqs == Array(1...50))
        }
    }

    enum Outage: CaseIterable {
        case stopped
        case killed
    }

    @Test(
        arguments: Outage.allCases,
        [DeliverySettings.Version.v5, .v311]
    )
    func `an outage loses nothing and keeps the order`(kind: Outage, version: DeliverySettings.Version) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery(version, { $0.waitInEarnest() })
        try await delivery.running {
            fixture.log.commit(300)
            await subscriber.messages { !$0.seqs.isEmpty }
            switch kind {
            case .stopped: await fixture.broker.stop()
            case .killed: await fixture.broker.kill()
            }
            _ = await delivery.waitForFault()
            fixture.log.commit(300)
            try await fixture.broker.start()
            let messages = await subscriber.messages { Set($0.seqs).count >= 600 }
            #expect(messages.firstSeqs == Array(1...600))
            await fixture.log.waitForCursor(600)
        }
    }

    @Test func `the cursor stands still while the broker is frozen, and nothing is lost`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery()
        try await delivery.running {
            fixture.log.commit(10)
            await fixture.log.waitForCursor(10)
            fixture.broker.freeze()
            fixture.log.commit(500)
            try await eventually { delivery.deliveryStatus.inFlight > 0 }
            #expect(delivery.deliveryStatus.cursor == 10)
            #expect(fixture.log.cursor.state == 10)
            fixture.broker.thaw()
            let messages = await subscriber.messages { $0.seqs.count >= 510 }
            #expect(messages.seqs == Array(1...510))
            await fixture.log.waitForCursor(510)
        }
    }

    @Test func `a broker frozen for longer than the keepalive is disconnected and connected again`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery { settings in
            settings.waitInEarnest()
            settings.keepalive = .seconds(5)
        }
        try await delivery.running {
            fixture.log.commit(10)
            await fixture.log.waitForCursor(10)
            fixture.broker.freeze()
            fixture.log.commit(10)
            // The session's state shows this fault for milliseconds, until the next attempt to connect, which hangs.
            try await eventually { fixture.losses.contains { $0.hasPrefix(#"{"state":"lost","#) } }
            fixture.broker.thaw()
            let messages = await subscriber.messages { Set($0.seqs).count >= 20 }
            #expect(messages.firstSeqs == Array(1...20))
        }
    }

    @Test func `readings that history has lost are recorded as a gap`() async throws {
        let fixture = try await DeliveryFixture.started()
        fixture.log.commit(10)
        fixture.log.lose(through: 7)
        let delivery = fixture.delivery()
        await delivery.running { await fixture.log.waitForCursor(10) }
        let gap = #"{"state":"gap","after":0,"through":7,"reason":"deleted"}"#
        #expect(fixture.losses.filter { $0.contains("gap") } == [gap])
        #expect(delivery.counters.acknowledged.value == 3)
    }

    @Test func `a subscriber that leaves delays nothing`() async throws {
        let fixture = try await DeliveryFixture.started()
        let delivery = fixture.delivery(.v5, { $0.publishing.all.isRetained = false })
        try await delivery.running {
            try await withFirstSubscriber(fixture)
            fixture.log.commit(100)
            await fixture.log.waitForCursor(101)
            #expect(delivery.counters.published.value == 101)
            #expect(delivery.counters.republished.value == 0)
        }
    }

    /// Runs a subscriber that receives the first reading and leaves.
    private func withFirstSubscriber(_ fixture: DeliveryFixture) async throws {
        let subscriber = try await Subscriber(fixture.broker)
        fixture.log.commit(1)
        await subscriber.messages { $0.seqs == [1] }
        await fixture.log.waitForCursor(1)
        try await subscriber.leave()
    }

    @Test func `unauthorised readings are counted and skipped, and the others continue`() async throws {
        let folder = try TemporaryFolder()
        let rules = try folder.write("topic readwrite gattherd/#\ntopic deny gattherd/lab/secret/#\n", to: "acl")
        let fixture = try await DeliveryFixture.started(settings: ["acl_file \(rules)"])
        let subscriber = try await Subscriber(fixture.broker, to: "gattherd/#")
        let delivery = fixture.delivery { $0.options.topics.delay = .zero }
        await delivery.running {
            fixture.log.commit(1)
            fixture.log.commit(2, device: "secret")
            // Readings that the broker accepts show that it refuses this topic only.
            fixture.log.commit(20)
            await fixture.log.waitForCursor(23)
            let messages = await subscriber.messages { $0.seqs.count >= 21 }
            #expect(messages.seqs == [1] + Array(4...23))
            #expect(delivery.counters.refused.value == 2)
        }
    }

    @Test func `a stop with time to drain publishes the remaining readings`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery()
        async let running: Void = delivery.run()
        await delivery.wait(for: .connected)
        fixture.log.commit(1000)
        await subscriber.messages { !$0.seqs.isEmpty }
        await delivery.stop(within: .seconds(30))
        await running
        #expect(fixture.log.cursor.state == 1000)
        let messages = await subscriber.messages { $0.seqs.count >= 1000 }
        #expect(messages.seqs == Array(1...1000))
    }
}
