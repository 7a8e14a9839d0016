import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdSparkplug

/// The output at a real broker.
@Suite(.serialized, .timeLimit(.minutes(2))) struct SparkplugDeliveryTests {
    private static func output(
        _ broker: Broker,
        _ journal: MemoryJournal,
        _ version: MQTTVersion = .v5,
        _ change: (inout SparkplugOptions) -> Void = { _ in },
        isPublisher: SparkplugDelivery.PublisherCheck? = nil,
        record: @escaping SparkplugDelivery.EventHandler = { _ in }
    ) -> SparkplugDelivery {
        var settings = WireCapture.settings(broker.port, version)
        settings.host = "localhost"
        settings.primaryHost = nil
        change(&settings)
        return SparkplugDelivery(
            settings,
            journal: journal,
            log: .silent,
            setControl: { .success($0.value) },
            isPublisher: isPublisher,
            record: record
        )
    }

    @Test func `all values that are too large for the broker are skipped, counted and recorded`() async throws {
        let broker = try Broker(settings: ["max_packet_size 2000"])
        try await broker.start()
        let subscriber = try await Subscriber(broker, to: "spBv1.0/+/DDATA/#")
        let (journal, events) = (MemoryJournal(), Locked<[String]>([]))
        let output = Self.output(
            broker,
            journal,
            record: { members in
                let event = LifecycleEvent(time: Timestamp(microseconds: 0), kind: "output", members)
                events.withLock { $0.append(event.detail) }
            }
        )
        async let end: Void = output.run()
        output.describe(Devices.strap)
        output.update(Devices.link("strap", .ready))
        await output.waitForBirth()
        journal.commit(Devices.contact, .text(String(repeating: "x", count: 3000)), at: 1)
        await journal.waitForCursor(1)
        journal.commit(Devices.contact, .text("on"), at: 2)
        await journal.waitForCursor(2)
        journal.commit(Devices.contact, .text(String(repeating: "x", count: 3000)), at: 3)
        await journal.waitForCursor(3)
        await subscriber.messages { $0.count == 3 }
        await output.stop(within: .seconds(5))
        await end
        #expect(output.status.skipped == 2 && output.counters.refused.value == 2)
        let skips = events.withLock { $0.filter { $0.contains("skipped") } }
        #expect(skips.count == 2)
        #expect(skips.allSatisfy { $0.hasPrefix(#"{"output":"sparkplug","state":"skipped","count":1"#) })
    }

    @Test func `values that are too large together for the broker are in several messages`() async throws {
        let broker = try Broker(settings: ["max_packet_size 2000"])
        try await broker.start()
        let journal = MemoryJournal()
        let text = SampleValue.text(String(repeating: "x", count: 100))
        for second in Int64(1)...200 { journal.commit(Devices.contact, text, at: second) }
        let output = Self.output(broker, journal)
        async let end: Void = output.run()
        await journal.waitForCursor(200)
        await output.stop(within: .seconds(5))
        await end
        #expect(output.counters.historical.value == 200)
        #expect(output.status.skipped == 0 && output.counters.refused.value == 0)
    }

    @Test func `a birth that is too large for the broker has null in place of texts`() async throws {
        let broker = try Broker(settings: ["max_packet_size 2000"])
        try await broker.start()
        let subscriber = try await Subscriber(broker, to: "spBv1.0/+/DBIRTH/#")
        let journal = MemoryJournal()
        let output = Self.output(broker, journal)
        async let end: Void = output.run()
        output.describe(Devices.strap)
        output.update(Devices.link("strap", .ready))
        await output.waitForBirth()
        await subscriber.messages { $0.count == 1 }
        journal.commit(Devices.contact, .text(String(repeating: "x", count: 3000)), at: 1)
        await journal.waitForCursor(1)
        var changed = Devices.strap
        changed.streams.append(.init(name: "more", metrics: [MetricDescriptor(name: "more")]))
        output.describe(changed)
        await subscriber.messages { $0.count == 2 }
        #expect(output.counters.failures.value == 0)
        await output.stop(within: .zero)
        await end
    }

    @Test func `a text that was left out of a birth is published when it comes again`() async throws {
        let broker = try Broker(settings: ["max_packet_size 2000"])
        try await broker.start()
        let subscriber = try await Subscriber(broker, to: "spBv1.0/+/DDATA/#")
        let journal = MemoryJournal()
        let output = Self.output(broker, journal) { $0.isByException = true }
        async let end: Void = output.run()
        output.describe(Devices.strap)
        output.update(Devices.link("strap", .ready))
        await output.waitForBirth()
        let text = SampleValue.text(String(repeating: "x", count: 1500))
        journal.commit(Devices.contact, text, at: 1)
        await journal.waitForCursor(1)
        var larger = Devices.strap
        larger.streams.append(.init(name: String(repeating: "x", count: 600), metrics: [MetricDescriptor(name: "x")]))
        output.describe(larger)
        journal.commit(Devices.contact, text, at: 2)
        await subscriber.messages { $0.count == 2 }
        #expect(output.counters.refused.value == 1)
        await output.stop(within: .zero)
        await end
    }

    @Test func `a birth that the broker refuses ends the session with a problem`() async throws {
        let broker = try Broker(settings: ["max_packet_size 2000"])
        try await broker.start()
        let output = Self.output(broker, MemoryJournal())
        async let end: Void = output.run()
        var large = Devices.strap
        large.streams = (0..<200).map { .init(name: "stream-\($0)", metrics: [MetricDescriptor(name: "value")]) }
        output.describe(large)
        output.update(Devices.link("strap", .ready))
        try await eventually { output.status.problem?.contains("DBIRTH") == true }
        await output.stop(within: .zero)
        await end
    }

    @Test func `entries wait at most since the newest one that is delivered was committed`() {
        var waiting = WaitingTime()
        let updates: [(head: Int64, cursor: Int64, waits: Int?)] = [
            (5, 5, nil), (6, 5, 0), (7, 5, 1), (8, 6, 2), (9, 7, 2),
        ]
        for (second, update) in updates.enumerated() {
            let waits = waiting.update(head: update.head, cursor: update.cursor, at: .seconds(second))
            #expect(waits == update.waits.map { Duration.seconds($0) })
        }
        #expect(waiting.update(head: 9, cursor: 9, at: .seconds(5)) == nil)
        #expect(waiting.update(head: 10, cursor: 9, at: .seconds(3600)) == .zero, "it was idle for an hour")
    }

    @Test func `in a birth that is too large only texts become null`() {
        let metrics = [
            SparkplugMetric(name: "a", value: .long(1)), SparkplugMetric(name: "b", value: .string("x")),
        ]
        let message = SparkplugMessage(
            topic: "spBv1.0/g/DBIRTH/lab/strap",
            payload: SparkplugPayload(metrics: metrics, seq: 3)
        )
        let shorter = message.withoutTexts.payload
        #expect(message.isBirth && shorter.seq == 3)
        #expect(shorter.metrics.map(\.value) == [.long(1), nil] && shorter.metrics.map(\.isNull) == [false, true])
    }

    @Test func `a device that another gateway publishes is dead here, without its advertisements`() async throws {
        let broker = try Broker()
        try await broker.start()
        let subscriber = try await Subscriber(broker, to: "spBv1.0/+/+/lab/strap")
        let (journal, isPublisher) = (MemoryJournal(), Locked(true))
        let output = Self.output(broker, journal, isPublisher: { _, _ in isPublisher.withLock(\.self) })
        async let end: Void = output.run()
        output.describe(Devices.strap)
        output.update(Devices.link("strap", .ready))
        await output.waitForBirth()
        journal.commit(Devices.heartRate, .integer(60), .integer(1), at: 1, source: .advert)
        await journal.waitForCursor(1)
        isPublisher.withLock { $0 = false }
        output.update(DeviceLease(device: "strap", state: "standby", owner: "east", epoch: 7, isPublisher: false))
        await subscriber.messages { $0.contains { $0.topic.contains("/DDEATH/") } }
        let count = subscriber.messages.count
        journal.commit(Devices.heartRate, .integer(61), .integer(2), at: 2, source: .advert)
        await journal.waitForCursor(2)
        isPublisher.withLock { $0 = true }
        output.update(DeviceLease(device: "strap", state: "owner", owner: "lab", epoch: 8))
        let messages = await subscriber.messages { $0.count > count }
        #expect(messages[count].topic.contains("/DBIRTH/"))
        await output.stop(within: .seconds(5))
        await end
        #expect(output.status.cursor == 2)
    }

    @Test func `a link and a lease together decide whether hosts see a device`() {
        var devices = PublishedDevices()
        let answers = [
            devices.set(true, of: "tag"), devices.setPublisher(true, of: "tag"), devices.setPublisher(false, of: "tag"),
            devices.setPublisher(false, of: "tag"), devices.set(true, of: "tag"), devices.setPublisher(true, of: "tag"),
            devices.set(false, of: "tag"), devices.setPublisher(false, of: "tag"),
        ]
        #expect(answers == [true, nil, false, nil, false, true, false, nil])
        devices.remove("tag")
        let isSeen = devices.set(true, of: "tag")
        #expect(isSeen)
    }

    @Test func `rebirths and historical values are counted`() async throws {
        let broker = try Broker()
        try await broker.start()
        let journal = MemoryJournal()
        journal.commit(Devices.heartRate, .integer(60), .integer(1), at: 1)
        let output = Self.output(broker, journal)
        async let end: Void = output.run()
        output.describe(Devices.strap)
        output.update(Devices.link("strap", .ready))
        await journal.waitForCursor(1)
        #expect(output.counters.historical.value == 2)
        let rebirth = SparkplugMetric(name: "Node Control/Rebirth", value: .boolean(true))
        let payload = SparkplugPayload(timestamp: 1, metrics: [rebirth]).encoded
        let subscriber = try await Subscriber(broker, to: "spBv1.0/+/NBIRTH/#")
        try await broker.publish(payload, to: "spBv1.0/Plant 1/NCMD/lab")
        await subscriber.messages { !$0.isEmpty }
        await output.stop(within: .seconds(5))
        await end
        #expect(output.counters.rebirthRequests.value == 1 && output.counters.rebirths.value == 1)
    }

    @Test(arguments: [MQTTVersion.v311, .v5])
    func `values reach a subscriber of a real broker, and a broken broker is followed by its backlog`(
        version: MQTTVersion
    ) async throws {
        let broker = try Broker()
        try await broker.start()
        let subscriber = try await Subscriber(broker, to: "spBv1.0/#")
        let journal = MemoryJournal()
        let output = Self.output(broker, journal, version)
        async let end: Void = output.run()
        output.describe(Devices.strap)
        output.update(Devices.link("strap", .ready))
        journal.commit(Devices.heartRate, .integer(60), .integer(1), at: 1)
        await journal.waitForCursor(1)
        await subscriber.messages { $0.contains { $0.topic.contains("/DDATA/") } }
        await broker.kill()
        journal.commit(Devices.heartRate, .integer(61), .integer(2), at: 2)
        try await broker.start()
        await journal.waitForCursor(2)
        await output.stop(within: .seconds(5))
        await end
        #expect(output.status.cursor == 2)
        #expect(output.status.state == .stopped)
        #expect(output.counters.births.value == 2)
        #expect(subscriber.messages.allSatisfy { !$0.isRetained })
    }

    @Test func `the broker publishes NDEATH for a killed output`() async throws {
        let broker = try Broker()
        try await broker.start()
        let journal = MemoryJournal()
        let (first, second) = (Self.output(broker, journal), Self.output(broker, journal))
        async let end: Void = first.run()
        await first.waitForBirth()
        let subscriber = try await Subscriber(broker, to: "spBv1.0/+/NDEATH/#")
        // A second client with the same id ends the first session without DISCONNECT.
        async let other: Void = second.run()
        await subscriber.messages { !$0.isEmpty }
        #expect(subscriber.messages.first?.topic == "spBv1.0/Plant 1/NDEATH/lab")
        async let stopped: Void = first.stop(within: .zero)
        await second.stop(within: .zero)
        await stopped
        _ = await (end, other)
    }

    @Test func `a wrong password is a problem in the status`() async throws {
        let broker = try Broker(users: [("gateway", "secret")])
        try await broker.start()
        let output = Self.output(broker, MemoryJournal(), .v5) {
            $0.username = "gateway"
            $0.password = Secret("guess")
        }
        async let end: Void = output.run()
        for await state in output.states where state == .waiting { break }
        #expect(output.status.problem?.contains("sparkplug.username") == true)
        #expect(output.status.errors > 0)
        await output.stop(within: .zero)
        await end
    }

    @Test(arguments: [MQTTVersion.v5, .v311])
    func `a refused subscription is tried again, so that the host's state arrives`(version: MQTTVersion) async throws {
        let broker = try RecordingBroker(version)
        broker.refuseSubscriptions(4)
        var settings = WireCapture.settings(broker.port, version)
        settings.primaryHost = "scada"
        settings.options.refusedBackoff = Backoff(minimum: .milliseconds(20), maximum: .seconds(1))
        let wanted = settings.topics.subscriptions.count + 4
        let output = SparkplugDelivery(
            settings,
            journal: MemoryJournal(),
            log: .silent,
            setControl: { .success($0.value) },
            record: { _ in }
        )
        async let end: Void = output.run()
        await broker.wait { packets in packets.count { $0.type == 8 } == wanted }
        broker.send(#"{"online":true,"timestamp":1}"#.utf8, to: "spBv1.0/STATE/scada", isRetained: true)
        await output.waitForBirth()
        await output.stop(within: .zero)
        await end
        #expect(output.counters.failures.value == 0)
    }

    @Test func `states that a slow broker leaves unread are replaced by births in a new session`() async throws {
        let broker = try Broker()
        try await broker.start()
        let output = Self.output(broker, MemoryJournal()) { $0.options.unsentLimit = 100_000 }
        async let end: Void = output.run()
        output.describe(Devices.large("strap"))
        output.update(Devices.link("strap", .ready))
        await output.waitForBirth()
        broker.freeze()
        try await eventually {
            for _ in 0..<10 {
                output.update(Devices.link("strap", .disconnected))
                output.update(Devices.link("strap", .ready))
            }
            return output.status.problem?.contains("reads too slowly") == true
        }
        #expect(output.counters.failures.value == 1)
        broker.thaw()
        try await eventually { output.counters.births.value == 2 }
        await output.stop(within: .zero)
        await end
    }

    @Test func `births of the node that a broker reads slowly do not end the session`() async throws {
        let broker = try Broker()
        try await broker.start()
        let output = Self.output(broker, MemoryJournal()) { $0.options.unsentLimit = 0 }
        // More than the kernel accepts at once.
        for number in 0..<200 {
            output.describe(Devices.large("strap-\(number)"))
            output.update(Devices.link("strap-\(number)", .ready))
        }
        async let end: Void = output.run()
        await output.waitForBirth()
        #expect(output.counters.failures.value == 0)
        await output.stop(within: .zero)
        await end
    }

    @Test func `bdSeq continues over restarts`() async throws {
        let broker = try RecordingBroker(.v311)
        let folder = try TemporaryFolder()
        for number in 0..<2 {
            var settings = WireCapture.settings(broker.port, .v311)
            settings.primaryHost = nil
            settings.sequenceFile = folder.file("bdseq")
            let output = SparkplugDelivery(
                settings,
                journal: MemoryJournal(),
                log: .silent,
                setControl: { .success($0.value) },
                record: { _ in }
            )
            async let end: Void = output.run()
            await output.waitForBirth()
            await output.stop(within: .zero)
            await end
            #expect(BirthSequenceFile(path: folder.file("bdseq")).load() == UInt8(number))
        }
    }

    @Test(arguments: ["", "x", "256", "-1"]) func `a damaged file of bdSeq counts as none`(text: String) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(text, to: "bdseq")
        #expect(BirthSequenceFile(path: path).load() == nil)
        #expect(BirthSequenceFile(path: folder.file("none")).load() == nil)
        #expect(!BirthSequenceFile(path: "/nowhere/bdseq").save(1))
    }
}

extension Devices {
    /// A device with a birth of 100 kB.
    fileprivate static func large(_ name: String) -> DeviceDescription {
        let padding = String(repeating: "x", count: 5000)
        var device = strap
        device.device = name
        device.streams = (0..<20).map { .init(name: "\(padding)-\($0)", metrics: [MetricDescriptor(name: "value")]) }
        return device
    }
}

extension SparkplugDelivery {
    /// Waits until the edge node is born.
    fileprivate func waitForBirth() async {
        for await state in states where state == .connected { return }
    }
}
