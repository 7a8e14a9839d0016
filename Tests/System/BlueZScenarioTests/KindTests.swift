import BlueZKit
import TestKit
import Testing

/// Every kind of device: history and subscribers get exactly the values that it sends.
@Suite(.timeLimit(.minutes(12)), .serialized) struct KindTests {
    private static let heartRateFormats = [
        "energy: true, rr: 2", "format: u16, energy: true, rr: 9, contact: yes", "contact: no", "format: u16", "rr: 1",
    ]

    /// One strap for each format and path: starting a stack takes longer than the test itself.
    @Test func `every heart rate format arrives, by signals and by socket`() async throws {
        let straps = ["signals", "socket"].flatMap { path in
            Self.heartRateFormats.enumerated().map { number, format in
                let name = "\(path)-\(number + 1)"
                return TestPeripherals.Entry("heart-rate", name, "rate: 20, \(format)", device: "notify: \(path)")
            }
        }
        try await expectDelivery(TestPeripherals(straps), readings: 100)
    }

    @Test func `notifications and indications of the standard services arrive`() async throws {
        let peripherals = TestPeripherals(
            .init("environmental", "garden", "rate: 10"),
            .init("thermometer", "forehead", "rate: 5"),
            .init("number-service", "dial", "rate: 10")
        )
        try await expectDelivery(peripherals, readings: 25)
    }

    /// bluetoothd subscribes to the battery level before any client does.
    ///
    /// Clients miss the values until they subscribe.
    @Test func `battery levels arrive as soon as the device is ready`() async throws {
        let gateway = try await Gateway(TestPeripherals(.init("battery", "cell", "rate: 10")))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        try await gateway.order("silence", "cell", "notifications")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.order("silence", "cell", "off")
        try await gateway.waitForReadings(25)
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    @Test func `a malformed heart rate is a reject and the link stays up`() async throws {
        let gateway = try await Gateway(
            TestPeripherals(.init("malformed-heart-rate", "odd", "rate: 10"), .init("heart-rate", "strap", "rate: 10"))
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await eventually { try await gateway.rejectCount("odd") >= 30 }
        try await gateway.expectAgreement(subscriber)
        #expect(try await gateway.readyCount("odd") == 1)
        try await gateway.end(daemon)
    }

    @Test func `a control is read at connect, written, range-checked and notified`() async throws {
        let gateway = try await Gateway(TestPeripherals(.init("number-service", "dial", "value: 7")))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await eventually { try await gateway.newest("dial", "number") == "7 read" }
        try await gateway.broker.publish(#"{"value":128,"transaction":"a"}"#, to: "gattherd/test/dial/number/set")
        try await eventually { try await gateway.newest("dial", "number") == "128 notify" }
        try await gateway.broker.publish(#"{"value":256,"transaction":"b"}"#, to: "gattherd/test/dial/number/set")
        let results = await subscriber.messages { $0.count { $0.topic == "gattherd/test/dial/number/result" } == 2 }
            .filter { $0.topic.hasSuffix("/result") }.map(\.payload)
        #expect(results.first == #"{"status":"ok","value":128,"transaction":"a"}"#)
        #expect(results.last?.hasPrefix(#"{"status":"error","error":"#) == true)
        #expect(results.last?.hasSuffix(#","transaction":"b"}"#) == true)
        try await eventually { try await gateway.controlEvents() == ["dial number 128 ok", "dial number 256 error"] }
        #expect(try await gateway.truth().entries.filter { $0.event == "write" }.map(\.hex) == ["80"])
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    @Test func `the throttle merges rapid control writes and delivers the last one`() async throws {
        let gateway = try await Gateway(TestPeripherals(.init("number-service", "dial")))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        let values = (1...50).map { "\($0)" }.joined(separator: "\n") + "\n"
        try await gateway.broker.publish(values.utf8, to: "gattherd/test/dial/number/set", lines: true)
        try await eventually { try await gateway.newest("dial", "number") == "50 notify" }
        let writes = try await gateway.truth().entries.filter { $0.event == "write" }
        #expect(writes.last?.hex == "32")
        #expect(writes.count < 50)
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    private func expectDelivery(_ peripherals: TestPeripherals, readings: Int) async throws {
        let gateway = try await Gateway(peripherals)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(readings)
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }
}

extension Gateway {
    func rejectCount(_ device: String) async throws -> Int {
        Int(try await database.value("SELECT count(*) FROM rejects WHERE device = '\(device)'")) ?? 0
    }

    /// The control requests: device, control, value and status, oldest first.
    func controlEvents() async throws -> [String] {
        let sql = """
            SELECT device, json_extract(detail, '$.control'), json_extract(detail, '$.value'), json_extract(detail, '$.status')
            FROM events WHERE kind = 'control' ORDER BY ts
            """
        return try await database.rows(sql).map { $0.joined(separator: " ") }
    }

    /// The newest value of a metric and its source.
    func newest(_ device: String, _ metric: String) async throws -> String? {
        let sql = """
            SELECT CAST(value AS INTEGER) || ' ' || source FROM latest
            WHERE device = '\(device)' AND metric = '\(metric)'
            """
        return try await database.rows(sql).first?.first
    }
}
