import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdDelivery

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

    @Test func `after a reload the next reading of a stream is a change`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        var onChange = PublishingRules()
        onChange.all.policy.isOnChange = true
        let delivery = fixture.delivery { $0.publishing = onChange }
        await delivery.running {
            commit(["\"t\":5"], to: fixture)
            await fixture.log.waitForCursor(1)
            for (count, rules, value) in [(2, PublishingRules(), 7), (3, onChange, 5)] {
                delivery.apply(rules, ControlPermissions())
                commit(["\"t\":\(value)"], to: fixture)
                await fixture.log.waitForCursor(Int64(count))
            }
            let messages = await subscriber.messages { values($0, "air").count == 3 }
            #expect(values(messages, "air").map { $0.split(separator: ":").last } == ["5}", "7}", "5}"])
        }
    }

    @Test func `advertisements of a device are published by its publisher at their time`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = fixture.delivery(.v5) { settings in
            settings.isPublisher = { $0 == "room" && $1.microseconds != 2_000_000 }
        }
        await delivery.running {
            for number in 1...3 {
                fixture.log.commit(payload: "\"n\":\(number)", device: "room", stream: "air", source: .advert)
            }
            for number in 4...5 { fixture.log.commit(payload: "\"n\":\(number)", device: "room", stream: "air") }
            fixture.log.commit(payload: "\"n\":6", device: "hall", stream: "air", source: .advert)
            await fixture.log.waitForCursor(6)
            let messages = await subscriber.messages { values($0, "air").count == 4 }
            #expect(values(messages, "air").map { $0.split(separator: ":").last } == ["1}", "3}", "4}", "5}"])
            #expect(!messages.contains { $0.topic == "gattherd/lab/hall/air" })
        }
    }

    @Test func `of a backlog within an interval only the first and the last reading are published`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = delivery(fixture) { $0.policy.minimumInterval = .seconds(86_400) }
        commit((1...700).map { "\"t\":\($0)" }, to: fixture)
        await delivery.running {
            await fixture.log.waitForCursor(700)
            let messages = await subscriber.messages { values($0, "air").count == 2 }
            #expect(values(messages, "air").map { $0.split(separator: ":").last } == ["1}", "700}"])
            #expect(delivery.counters.suppressed.value == 699)
            #expect(delivery.counters.delayed.value == 1)
        }
    }

    @Test func `a clean stop publishes the last reading of each stream, also of those in a backlog`() async throws {
        let (published, mayAnswer) = (LatestValue<Set<Int64>>([]), LatestValue(false))
        let broker = try FakeBroker { client, _ in
            client.accept()
            client.serve { packet in
                guard let seq = packet.seq else { return }
                published.update { $0.insert(seq) }
                // The broker's first answer shows that it accepts readings.
                while published.state.count > 1, !mayAnswer.state { _ = client.hasMore(within: 10) }
            }
        }
        let log = TestLog(startingAt: Timestamp(microseconds: WallClock.microseconds))
        for _ in 1...3 {
            for device in 0..<400 { log.commit(1, device: "d\(device)") }
        }
        let delivery = try broker.delivery(log) { settings in
            settings.stopPatiently()
            settings.publishing.all.policy.minimumInterval = .seconds(86_400)
        }
        async let running: Void = delivery.run()
        for await readings in published.watch() where readings.count > 1 { break }
        delivery.requestStop(drain: .seconds(60))
        await delivery.roundTrip()
        mayAnswer.set(true)
        await running
        #expect(published.state == Set(1...400).union(801...1200))
        #expect(log.cursor.state == 1200)
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

    @Test(arguments: [DeliverySettings.Version.v5, .v311], [true, false])
    func `readings of a stream are gathered into arrays`(
        version: DeliverySettings.Version,
        isAcknowledged: Bool
    ) async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = delivery(fixture, version) { rule in
            rule.batch = .milliseconds(50)
            rule.isAcknowledged = isAcknowledged
        }
        await delivery.running {
            commit((1...250).map { "\"t\":\($0)" }, to: fixture)
            commit(["\"n\":1"], to: fixture, stream: "count")
            await fixture.log.waitForCursor(251)
            let messages = await subscriber.messages { values($0, "air").joined().contains("\"t\":250}") }
            let arrays = values(messages, "air")
            #expect(arrays.count < 250 && arrays.allSatisfy { $0.hasPrefix("[{\"seq\":") && $0.hasSuffix("}]") })
            let seqs = arrays.joined().split(separator: "\"seq\":").dropFirst().map { $0.prefix { $0.isNumber } }
            #expect(seqs.map { Int($0) } == (1...250).map { $0 })
            #expect(values(messages, "count").allSatisfy { $0.hasPrefix("{") }, "only this stream has arrays")
            #expect(delivery.counters.published.value == 251)
        }
        let late = try await Subscriber(fixture.broker, to: "gattherd/lab/room/air")
        let kept = await late.messages { !$0.isEmpty }
        #expect(kept.first?.isRetained == true && kept.first?.payload.hasSuffix("\"t\":250}]") == true)
    }

    @Test func `a batch that is too large for the broker is published in parts`() async throws {
        let fixture = try await DeliveryFixture.started(settings: ["max_packet_size 1000"])
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = delivery(fixture) { $0.batch = .milliseconds(20) }
        commit((1...100).map { "\"t\":\($0)" }, to: fixture)
        await delivery.running {
            await fixture.log.waitForCursor(100)
            let messages = await subscriber.messages { values($0, "air").joined().contains("\"t\":100}") }
            let arrays = values(messages, "air")
            #expect(arrays.count < 100 && arrays.allSatisfy { $0.utf8.count < 1000 })
            let seqs = arrays.joined().split(separator: "\"seq\":").dropFirst().map { $0.prefix { $0.isNumber } }
            #expect(seqs.map { Int($0) } == (1...100).map { $0 })
            #expect(delivery.counters.refused.value == 0)
        }
    }

    @Test func `a batch has one bare value of each metric, the newest`() async throws {
        let fixture = try await DeliveryFixture.started()
        let subscriber = try await Subscriber(fixture.broker)
        let delivery = delivery(fixture) { rule in
            rule.batch = .seconds(60)
            rule.hasScalars = true
        }
        let running = Task { await delivery.run() }
        commit(["\"t\":1,\"h\":5", "\"t\":2"], to: fixture)
        await delivery.wait(for: .connected)
        commit(["\"n\":1"], to: fixture, stream: "count")
        await subscriber.messages { values($0, "count").count == 1 }
        // A stop publishes what is gathered.
        await delivery.stop(within: .seconds(10))
        await running.value
        let messages = await subscriber.messages { values($0, "air").count == 1 }
        #expect(values(messages, "air/t") == ["2"] && values(messages, "air/h") == ["5"])
        #expect(messages.first { $0.topic.hasSuffix("/h") }?.user.hasPrefix("seq:1 ") == true)
    }

    @Test func `a broker that loses its connection gets a batch again`() async throws {
        let fixture = try await DeliveryFixture.started()
        let delivery = delivery(fixture) { $0.batch = .milliseconds(20) }
        await delivery.running {
            commit((1...50).map { "\"t\":\($0)" }, to: fixture)
            await fixture.log.waitForCursor(50)
            await fixture.broker.kill()
            _ = await delivery.waitForFault()
            commit((51...80).map { "\"t\":\($0)" }, to: fixture)
            do {
                try await fixture.broker.start()
                let subscriber = try await Subscriber(fixture.broker)
                await subscriber.messages { values($0, "air").joined().contains("\"t\":80}") }
                await fixture.log.waitForCursor(80)
            } catch {
                Issue.record(error)
            }
        }
    }

    @Test func `arrays above the broker's packet limit are split without pauses`() async throws {
        let book = Locked<[[Int64]]>([])
        let broker = try FakeBroker { client, _ in
            client.accept(properties: [0x27, 0, 0, 2, 0])
            client.serve { packet in
                guard packet.kind == .publish, packet.payload.hasPrefix("[{\"seq\":") else { return }
                let seqs = packet.payload.split(separator: "{\"seq\":").compactMap { text in
                    Int64(text.prefix { $0.isNumber })
                }
                book.withLock { $0.append(seqs) }
            }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(500)
        let delivery = broker.delivery(fixture) { settings in
            settings.publishing.all.batch = .milliseconds(10)
            // A pause would exceed the time limit of this suite.
            settings.options.retryPause = .seconds(100)
        }
        await delivery.running { await fixture.log.waitForCursor(500) }
        let arrays = book.withLock { $0 }
        #expect(arrays.flatMap(\.self) == Array(1...500))
        #expect(arrays.contains { $0.count > 1 })
        #expect(delivery.counters.refused.value == 0)
    }

    /// Without the halving, the topic would be set aside after three sessions.
    @Test func `arrays above a limit that the broker does not state are halved after each lost session`() async throws {
        let book = Locked<[Int64]>([])
        let broker = try FakeBroker { client, _ in
            var client = client
            client.version = .v311
            client.accept()
            while let packet = client.next() {
                guard packet.body.count <= 2000 else { return client.end() }
                client.answer(packet)
                guard packet.kind == .publish, packet.payload.hasPrefix("[{\"seq\":") else { continue }
                let seqs = packet.payload.split(separator: "{\"seq\":").compactMap { text in
                    Int64(text.prefix { $0.isNumber })
                }
                book.withLock { $0 += seqs }
            }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(200)
        let delivery = broker.delivery(fixture, .v311) { settings in
            settings.publishing.all.batch = .milliseconds(10)
            settings.options.topics.delay = .zero
        }
        await delivery.running { await fixture.log.waitForCursor(200) }
        #expect(book.withLock { $0 } == Array(1...200))
        #expect(delivery.counters.refused.value == 0)
    }

    @Test func `the limit of arrays halves at once and grows slowly`() {
        var limit = ArrayLimit()
        limit.refuse(100)
        #expect(limit.count == 50)
        for _ in 0..<99 { limit.accept(50) }
        limit.accept(10)
        #expect(limit.count == 50)
        limit.accept(50)
        #expect(limit.count == 100)
        limit.refuse(1)
        #expect(limit.count == 1)
    }

    @Test func `the limit of arrays grows more slowly after each session that an array has ended`() {
        var limit = ArrayLimit()
        for patience in [400, 1600, 6400] {
            limit.refuse(100, hasEndedSession: true)
            for _ in 1..<patience { limit.accept(50) }
            #expect(limit.count == 50)
            limit.accept(50)
            #expect(limit.count == 100)
        }
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
