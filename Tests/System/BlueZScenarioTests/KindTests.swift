import BlueZKit
import TestKit
import Testing

/// Every kind of device: what it sends is what history has and what a subscriber gets.
@Suite(.timeLimit(.minutes(3)), .serialized) struct KindTests {
    @Test(
        arguments: [
            "energy: true, rr: 2", "format: u16, energy: true, rr: 9, contact: yes", "contact: no", "format: u16",
            "rr: 1",
        ],
        ["signals", "socket"]
    )
    func `Every form of a heart rate arrives, by signals and by socket`(form: String, path: String) async throws {
        let strap = Neighbourhood.Entry("heart-rate", "strap", "rate: 50, \(form)", device: "notify: \(path)")
        try await observe(Neighbourhood(strap), readings: 100)
    }

    @Test(arguments: [
        Neighbourhood.Entry("environmental", "garden", "rate: 10"),
        Neighbourhood.Entry("thermometer", "forehead", "rate: 5"),
        Neighbourhood.Entry("number-service", "dial", "rate: 10"),
    ])
    func `Notifications and indications of the standard services arrive`(kind: Neighbourhood.Entry) async throws {
        try await observe(Neighbourhood(kind), readings: 25)
    }

    /// bluetoothd subscribes to the battery for itself, before anybody asks: what comes then is not ours to get.
    @Test func `A battery's level arrives from when the device is ready`() async throws {
        let gateway = try await Gateway(Neighbourhood(.init("battery", "cell", "rate: 10")))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        try await gateway.order("silence", "cell", "notifications")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.order("silence", "cell", "off")
        try await gateway.waitForReadings(25)
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    @Test func `What is no heart rate is a reject, and the link stays up`() async throws {
        let gateway = try await Gateway(
            Neighbourhood(.init("malformed-heart-rate", "odd", "rate: 10"), .init("heart-rate", "strap", "rate: 10"))
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await eventually { try await gateway.rejectCount("odd") >= 30 }
        try await gateway.expectAgreement(subscriber)
        #expect(try await gateway.readyCount("odd") == 1)
        try await gateway.end(daemon)
    }

    @Test func `A number is read at connect, set, refused when it is none, and notified`() async throws {
        let gateway = try await Gateway(Neighbourhood(.init("number-service", "dial", "value: 7")))
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
        try await eventually { try await gateway.audit() == ["dial number 128 ok", "dial number 256 error"] }
        #expect(try gateway.truth().entries.filter { $0.event == "write" }.map(\.hex) == ["80"])
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    @Test func `Of many numbers in a moment the throttle lets the last one through`() async throws {
        let gateway = try await Gateway(Neighbourhood(.init("number-service", "dial")))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        let values = (1...50).map { "\($0)" }.joined(separator: "\n") + "\n"
        try await gateway.broker.publish(values.utf8, to: "gattherd/test/dial/number/set", lines: true)
        try await eventually { try await gateway.newest("dial", "number") == "50 notify" }
        let written = try gateway.truth().entries.filter { $0.event == "write" }
        #expect(written.count < 25)
        #expect(written.last?.hex == "32")
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    private func observe(_ neighbourhood: Neighbourhood, readings: Int) async throws {
        let gateway = try await Gateway(neighbourhood)
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

    /// What was set, and what came of it.
    func audit() async throws -> [String] {
        let sql = """
            SELECT device, json_extract(detail, '$.control'), json_extract(detail, '$.value'), json_extract(detail, '$.status')
            FROM events WHERE kind = 'control' ORDER BY ts
            """
        return try await database.rows(sql).map { $0.joined(separator: " ") }
    }

    /// The newest value of a metric and where it came from.
    func newest(_ device: String, _ metric: String) async throws -> String? {
        let sql =
            "SELECT CAST(value AS INTEGER) || ' ' || source FROM latest WHERE device = '\(device)' AND metric = '\(metric)'"
        return try await database.rows(sql).first?.first
    }
}
