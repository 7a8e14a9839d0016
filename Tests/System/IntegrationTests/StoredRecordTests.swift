import Foundation
import GattherdProcess
import TestKit
import Testing

/// Stored records of simulated devices, with cut links and a daemon that is killed.
@Suite(.timeLimit(.minutes(5)), .serialized) struct StoredRecordTests {
    /// The profile of the simulator's numbered records.
    private static let profile = """
        contract: 1
        profile: meter
        services: [fff0]
        records: [{stream: record, racp: 2a52, filter: u32le, clock: 2a2b, every: 1s}]
        characteristics:
          - uuid: fff1
            stream: record
            subscribe: notify
            record: {number: number, time: clock}
            fields:
              - {metric: number, type: u32le}
              - {metric: clock, type: u32le, unit: s, kind: state}
              - {metric: identity, type: u32le}
        """

    private static let settings = "profiles: {paths: [meter.yaml, \(Checkout.root.path)/Plugins/Standard]}\n"

    private static func scenario(_ records: String) -> String {
        """
        timing: quick
        peripherals:
          - {name: probe, kind: recorder, address: C0:FF:EE:00:00:09, connect_latency: 5ms, records: \(records)}
        """
    }

    private static func cuts(_ least: Int, _ most: Int) -> String { "cut_after: \(least), cut_before: \(most)" }

    private func bench(_ records: String) async throws -> PeripheralBench {
        try await PeripheralBench(Self.scenario(records), files: ["meter.yaml": Self.profile])
    }

    private func count(_ bench: PeripheralBench, _ sql: String) async -> Int {
        let text = try? await SQLiteShell(bench.folder.file("readings.db")).value(sql)
        return text.flatMap { Int($0) } ?? 0
    }

    private func stored(_ bench: PeripheralBench) async -> Int {
        await count(bench, "SELECT count(*) FROM history WHERE metric = 'identity'")
    }

    /// The records whose time differs by more than a second from the device's clock minus its error.
    private func misdated(_ bench: PeripheralBench, clockAhead: Int) async -> Int {
        await count(
            bench,
            """
            SELECT count(*) FROM history WHERE metric = 'clock'
            AND abs(value - \(clockAhead) - ts / 1e6) > 1
            """
        )
    }

    @Test func `links that are cut and kills lose no record and store none twice`() async throws {
        let bench = try await bench(
            "{form: numbered, count: 3000, every: 1h, speed: 20000, clock_ahead: 20h, \(Self.cuts(300, 1500))}"
        )
        for kill in 1...4 {
            let daemon = try bench.startDaemon(settings: Self.settings)
            try await eventually { await stored(bench) >= 200 * kill }
            daemon.signal(SIGKILL)
            _ = await daemon.wait()
        }
        let daemon = try bench.startDaemon(settings: Self.settings)
        try await eventually { try await bench.run("status", "--json").1.contains(#""state":"complete""#) }
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
        let total = await stored(bench)
        #expect(total == 3000)
        let different = await count(bench, "SELECT count(DISTINCT value) FROM history WHERE metric = 'identity'")
        #expect(different == 3000)
        #expect(await misdated(bench, clockAhead: 72_000) == 0)
        #expect(await count(bench, "SELECT count(*) FROM history WHERE metric = 'time_uncertain'") == 0)
    }

    @Test func `a device that was reset and whose clock was set is downloaded again with the right times`() async throws
    {
        let bench = try await bench("{form: numbered, count: 50, every: 1s, speed: 20000}")
        try await bench.withDaemon(settings: Self.settings) {
            try await eventually { await stored(bench) >= 50 }
            try await bench.order("drop", "probe")
            try await eventually { await stored(bench) >= 52 }
        }
        try await bench.order("reset-records", "probe")
        try await bench.order("set-clock", "probe", "500000000")
        try await bench.withDaemon(settings: Self.settings) {
            try await eventually {
                await count(bench, "SELECT count(*) FROM events WHERE kind = 'records' AND detail LIKE '%restarted%'")
                    > 0
            }
        }
        let identities = await count(bench, "SELECT count(DISTINCT value) FROM history WHERE metric = 'identity'")
        #expect(await stored(bench) == identities)
        #expect(await count(bench, "SELECT count(*) FROM history WHERE metric = 'clock' AND value > 2000000000") > 0)
        #expect(
            await count(
                bench,
                """
                SELECT count(*) FROM history WHERE metric = 'clock' AND abs(value
                - CASE WHEN value > 2000000000 THEN 500000000 ELSE 0 END - ts / 1e6) > 1
                """
            ) == 0
        )
    }

    @Test(arguments: [("glucose", "glucose", "sequence_number"), ("ruuvi", "ruuvi-log", "entry")])
    func `included profiles download the records of a device once`(
        form: String,
        profile: String,
        metric: String
    ) async throws {
        let bench = try await bench("{form: \(form), count: 400, every: 1h, speed: 20000, \(Self.cuts(50, 300))}")
        let settings = "profiles: {paths: [\(Checkout.root.path)/Plugins/Standard]}\n"
        for _ in 0..<2 {
            try await bench.withDaemon(", profiles: [\(profile)]", settings: settings) {
                try await eventually { try await bench.run("status", "--json").1.contains(#""state":"complete""#) }
            }
        }
        #expect(await count(bench, "SELECT count(*) FROM history WHERE metric = '\(metric)'") == 400)
        let times = await count(bench, "SELECT count(DISTINCT ts) FROM history WHERE metric = '\(metric)'")
        // Three entries of a RuuviTag share a time, which varies between downloads: a cut between them adds a time.
        #expect(form == "ruuvi" ? (134...160).contains(times) : times == 400)
    }

    @Test func `the history of an Aranet4 is read in blocks and once`() async throws {
        let bench = try await bench("{form: aranet4, count: 250, every: 60s}")
        let settings = "profiles: {paths: [\(Checkout.root.path)/Plugins/Standard]}\n"
        for _ in 0..<2 {
            try await bench.withDaemon(", profiles: [aranet-history]", settings: settings) {
                try await eventually {
                    let status = try await bench.run("status", "--json").1
                    return status.components(separatedBy: #""state":"complete""#).count == 5
                }
            }
        }
        for metric in ["temperature", "humidity", "pressure", "co2"] {
            let values = await count(bench, "SELECT count(*) FROM history WHERE metric = '\(metric)'")
            #expect((250...252).contains(values), "\(metric)")
        }
    }
}
