import Foundation
import GattherdProcess
import TestKit
import Testing

/// The main job, by the programs as they are: from a peripheral's notification to a subscriber's message.
@Suite(.timeLimit(.minutes(3)), .serialized) struct MainJobTests {
    private let straps = 4

    @Test func `Every notification is a row and a message, same values, same order, once`() async throws {
        let gateway = try await Gateway(straps: straps, rate: 20)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady(straps: straps)
        try await eventually { try gateway.truth().values.filter { $0.count > 60 }.count == straps }
        try await gateway.silence(straps: straps)
        let sent = try gateway.truth().values.reduce(0) { $0 + $1.count }
        try await eventually { try await gateway.stored().count >= sent }
        await end(daemon)
        try await expectAllStored(gateway)
        try await expectAllReceived(gateway, by: subscriber)
    }

    @Test func `A dropped link, an adapter off and on, a daemon that restarts: all are ready again by themselves`()
        async throws
    {
        let gateway = try await Gateway(straps: straps, rate: 5)
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady(straps: straps)
        try await gateway.order("drop", "strap-1")
        try await eventually { try await gateway.readyCount("strap-1") == 2 }
        try await gateway.order("power", "hci0", "off")
        try await gateway.order("power", "hci0", "on")
        try await gateway.waitUntilReady(straps: straps, times: 2)
        try await gateway.order("restart-daemon", "300ms")
        try await gateway.waitUntilReady(straps: straps, times: 3)
        let reasons = try await gateway.database.rows(
            "SELECT DISTINCT json_extract(detail, '$.reason') FROM events WHERE kind = 'link' AND device = 'strap-1'"
        ).compactMap(\.first)
        #expect(Set(["remote", "adapterPoweredOff", "daemonLost"]).isSubset(of: reasons))
        await end(daemon)
    }

    @Test
    func `With the broker away and the daemon killed again and again, what was committed arrives, and nothing else`()
        async throws
    {
        let gateway = try await Gateway(straps: straps, rate: 20)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        var daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady(straps: straps)
        await gateway.broker.kill()
        for round in 2...4 {
            let before = try await gateway.stored().count
            try await eventually { try await gateway.stored().count > before + 40 }
            daemon.signal(SIGKILL)
            _ = await daemon.wait()
            daemon = try gateway.startDaemon()
            try await gateway.waitUntilReady(straps: straps, times: round)
        }
        try await gateway.broker.start()
        try await gateway.silence(straps: straps)
        try await gateway.waitUntilDelivered()
        await end(daemon)
        try await expectSubsequence(gateway)
        try await expectAllReceived(gateway, by: subscriber)
    }

    @Test func `A payload that is no heart rate is a reject, and the link stays up`() async throws {
        let gateway = try await Gateway(straps: 1, rate: 1)
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady(straps: 1)
        for octets in ["", "00", "0148"] { try await gateway.order("notify", "strap-1", "2a37", octets) }
        try await eventually { try await gateway.database.value("SELECT count(*) FROM rejects") == "3" }
        let rejects = try await gateway.database.rows("SELECT bytes, reason FROM rejects ORDER BY ts")
        #expect(rejects.map(\.first) == ["", "00", "0148"])
        #expect(rejects.allSatisfy { $0.last?.hasPrefix("truncated") == true })
        #expect(try await gateway.readyCount("strap-1") == 1)
        await end(daemon)
    }

    // MARK: - Expectations

    private func expectAllStored(_ gateway: Gateway) async throws {
        let stored = Dictionary(grouping: try await gateway.stored(), by: \.device)
        for (device, sent) in try gateway.truth() {
            #expect(stored[device]?.map(\.measurement) == sent, "\(device)")
        }
    }

    /// What is stored was sent, in that order and no more often; at a kill some of it may be missing.
    private func expectSubsequence(_ gateway: Gateway) async throws {
        let truth = try gateway.truth()
        for (device, readings) in Dictionary(grouping: try await gateway.stored(), by: \.device) {
            var sent = (truth[device] ?? [])[...]
            for reading in readings {
                let match = sent.firstIndex(of: reading.measurement)
                #expect(
                    match != nil,
                    "\(device): \(reading.measurement) was stored, but not sent after the one before it"
                )
                if let match { sent = sent[(match + 1)...] }
            }
        }
    }

    private func expectAllReceived(_ gateway: Gateway, by subscriber: Subscriber) async throws {
        let stored = try await gateway.stored()
        await subscriber.messages { _ in subscriber.readings().order.count >= stored.count }
        let received = subscriber.readings()
        #expect(received.order == received.order.sorted())
        #expect(received.order == stored.map(\.seq))
        for reading in stored { #expect(received.bySeq[reading.seq] == reading.measurement) }
    }

    private func end(_ daemon: ChildProcess) async {
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }
}

extension Gateway {
    /// How often a device has become ready.
    func readyCount(_ device: String) async throws -> Int {
        let sql = """
            SELECT count(*) FROM events WHERE kind = 'link' AND device = '\(device)'
            AND json_extract(detail, '$.to') = 'ready'
            """
        return Int(try await database.value(sql)) ?? 0
    }
}
