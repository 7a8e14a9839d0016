import BlueZKit
import Foundation
import GattherdProcess
import Glibc
import TestKit
import Testing

/// Stored records of devices whose links are cut after any PDU, and a daemon that is killed.
///
/// `GATTHERD_RECORDS` is the number of records, for example 100000.
@Suite(.timeLimit(.minutes(120)), .serialized) struct StoredRecordFaultTests {
    /// The profile of a recorder with numbers that wrap.
    private static let profile = """
        contract: 1
        profile: meter
        services: [fff0]
        records: [{stream: record, racp: 2a52, clock: 2a2b, every: 1s}]
        characteristics:
          - uuid: fff1
            stream: record
            subscribe: notify
            record: {number: number, time: clock}
            fields:
              - {metric: number, type: u16le, kind: counter, wraps: 16}
              - {metric: clock, type: u32le, unit: s, kind: state}
              - {metric: identity, type: u32le}
              - {metric: made, type: u64le, unit: ms, kind: state}
        """

    private static let records = ProcessInfo.processInfo.environment["GATTHERD_RECORDS"].flatMap { Int($0) } ?? 4000

    /// Half of the records arrive by signals, the others by sockets.
    @Test(arguments: ["signals", "socket"])
    func `cut links, kills, wrapped numbers, a full ring and settings of the clock together lose none`(
        notify: String
    ) async throws {
        // The numbers wrap in the middle of the ring, which has less than half of them.
        let rounds = max(1, (Self.records / 2 + 29_999) / 30_000)
        for _ in 0..<rounds { try await downloadWithFaults(notify, count: max(100, Self.records / 2 / rounds)) }
    }

    private func downloadWithFaults(_ notify: String, count: Int) async throws {
        let first = 65_536 - Int.random(in: 1..<count)
        let ring = "bits: 16, count: \(first + count), capacity: \(count), every: 5s, clock_ahead: 20h"
        let gateway = try await gateway(
            "form: numbered, \(ring), speed: 2000, cut_after: 1, cut_before: \(min(count / 3, 4000))",
            device: "notify: \(notify)"
        )
        for kill in 1...4 {
            let daemon = try gateway.startDaemon()
            // Each daemon compares the clocks once: of two settings after that nobody knows the time.
            let least = max(Int.random(in: 0...count / 7) + count * kill / 7, try await stored(gateway) + 1)
            try await eventually { try await stored(gateway) >= least }
            daemon.signal(SIGKILL)
            _ = await daemon.wait()
            try await gateway.order("set-clock", "probe", "\(kill * 100_000_000)")
        }
        try await downloadAll(gateway)
        let newest = try await number(gateway, "SELECT max(value) FROM history WHERE metric = 'identity'")
        // What the device has made since may be missing when the daemon ends.
        try await downloadAll(gateway)
        try await gateway.stack.stop()
        try await expectAllOnce(gateway, first: first, count: count, newest: newest)
    }

    /// The device refuses the next request while it sends records to the killed daemon.
    @Test func `a daemon that is killed during a download continues it on the same link`() async throws {
        let gateway = try await gateway("form: numbered, bits: 16, count: 2000, every: 1h, speed: 200", device: "")
        let daemon = try gateway.startDaemon()
        try await eventually { try await stored(gateway) >= 200 }
        daemon.signal(SIGKILL)
        _ = await daemon.wait()
        try await downloadAll(gateway)
        let connections = try await gateway.truth().connections(of: gateway.peripherals.devices[0].address)
        #expect(connections == 1, "the link was adopted")
        try await gateway.stack.stop()
        let failed = "kind = 'records' AND json_extract(detail, '$.state') = 'failed'"
        #expect(try await number(gateway, "SELECT count(*) FROM events WHERE \(failed)") == 0)
        try await expectAllOnce(gateway, first: 0, count: 2000, newest: 1999)
    }

    @Test func `a glucose meter is downloaded once, with the included profile`() async throws {
        let gateway = try await gateway(
            "form: glucose, count: 300, every: 1h, speed: 2000, cut_after: 1, cut_before: 300",
            device: "profiles: [glucose]"
        )
        for _ in 0..<2 { try await downloadAll(gateway) }
        try await gateway.stack.stop()
        let numbers = "FROM history WHERE metric = 'sequence_number'"
        #expect(try await number(gateway, "SELECT count(*) \(numbers)") == 300)
        #expect(try await number(gateway, "SELECT count(DISTINCT value) \(numbers)") == 300)
        let span = try await number(gateway, "SELECT max(ts) - min(ts) \(numbers)")
        #expect(abs(span - 299 * 3_600_000_000) <= 1_000_000)
    }

    private func gateway(_ records: String, device: String) async throws -> Gateway {
        try await Gateway(
            TestPeripherals(.init("recorder", "probe", "records: {\(records)}", device: device)),
            files: ["meter.yaml": Self.profile],
            outputs: "profiles: {paths: [FOLDER/meter.yaml, \(Checkout.root.path)/Plugins/Standard]}"
        )
    }

    private func downloadAll(_ gateway: Gateway) async throws {
        let daemon = try gateway.startDaemon()
        try await eventually {
            try await gateway.command("status", "--json").1.contains(#""state":"complete""#)
        }
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }

    /// Expects each record once from the first that was not overwritten, with its right time.
    private func expectAllOnce(_ gateway: Gateway, first: Int, count: Int, newest: Int) async throws {
        let identities = "FROM history WHERE metric = 'identity' AND value <= \(newest)"
        let stored = try await number(gateway, "SELECT count(*) \(identities)")
        let oldest = try await number(gateway, "SELECT min(value) \(identities)")
        #expect(try await number(gateway, "SELECT count(DISTINCT value) \(identities)") == stored)
        #expect(newest - oldest + 1 == stored)
        #expect(stored >= count)
        // The ring loses a record every 5 s, perhaps before the first download.
        #expect(oldest - first < 100)
        let wrong = "metric = 'made' AND abs(value / 1e3 - ts / 1e6) > 1 OR metric = 'time_uncertain'"
        #expect(try await number(gateway, "SELECT count(*) FROM history WHERE \(wrong)") == 0)
    }

    private func number(_ gateway: Gateway, _ sql: String) async throws -> Int {
        try #require(Double(try await gateway.database.value(sql)).flatMap { Int(exactly: $0) })
    }

    /// The number of stored records; 0 while the file has no tables.
    private func stored(_ gateway: Gateway) async throws -> Int {
        let sql = "SELECT count(*) FROM history WHERE metric = 'identity'"
        return (try? await gateway.database.value(sql)).flatMap { Int($0) } ?? 0
    }
}
