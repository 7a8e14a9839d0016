import Foundation
import TestKit
import Testing

/// The C examples of native profiles in the daemon: a connection task with an answer, and advertisements.
@Suite(.timeLimit(.minutes(3))) struct NativePluginTests {
    /// The simulated probe notifies the values written to `fff2`.
    private static let probe = """
        timing: quick
        peripherals:
          - name: probe
            kind: custom
            address: C0:FF:EE:00:00:09
            advertise: {name: Probe}
            services:
              - uuid: fff0
                characteristics:
                  - {uuid: fff1, properties: [notify], notify: ["C4 09 2D"], rate: 20}
                  - {uuid: fff2, properties: [write, notify], value: "00", write: {notify_change: true}}
        """

    private static let beacon = """
        timing: quick
        peripherals:
          - name: probe
            kind: beacon
            address: C0:FF:EE:00:00:09
            advertise: {name: Garden, turn: 200ms, manufacturer_data: {0xFFFF: ["A501C40901", "A501C50902"]}}
        """

    /// Builds an example with other answers and returns the settings that load it.
    private func settings(
        _ name: String,
        _ bench: PeripheralBench,
        answers: KeyValuePairs<String, String> = [:]
    ) async throws -> String {
        var source = try String(
            contentsOf: Checkout.root.appending(path: "Plugins/Examples/\(name).c"),
            encoding: .utf8
        )
        for (old, new) in answers {
            #expect(source.contains("\"\(old)\""))
            source.replace("\"\(old)\"", with: "\"\(new)\"")
        }
        return "profiles: {paths: ['\(try await SharedLibrary.build(source, to: "\(name).so", in: bench.folder))']}\n"
    }

    private func value(_ bench: PeripheralBench, _ sql: String) async throws -> String {
        try await SQLiteShell(bench.folder.file("readings.db")).value(sql)
    }

    private func run(_ bench: PeripheralBench, _ settings: String) async throws {
        try await bench.withDaemon(settings: settings) {
            try await eventually {
                try await value(bench, "SELECT count(*) > 3 FROM history WHERE metric = 'moisture'") == "1"
            }
        }
        #expect(try await value(bench, "SELECT DISTINCT value FROM history WHERE metric = 'moisture'") == "45")
        #expect(
            try bench.text("truth").split(separator: "\n").contains { $0.contains("fff2") && $0.contains("013c00") }
        )
    }

    @Test func `a connection task is written and its answer is awaited`() async throws {
        let bench = try await PeripheralBench(Self.probe)
        try await run(bench, try await settings("soil-probe", bench, answers: ["81 00": "01 3C 00"]))
        #expect(try await value(bench, "SELECT count(*) FROM events WHERE kind = 'task'") == "0")
    }

    @Test func `a refused connection task is an event with the meaning of the answer`() async throws {
        let bench = try await PeripheralBench(Self.probe)
        try await run(bench, try await settings("soil-probe", bench, answers: ["81 ??": "01 ??"]))
        let detail = try await value(bench, "SELECT detail FROM events WHERE kind = 'task' LIMIT 1")
        #expect(detail.contains("the device says: the interval is refused"), "\(detail)")
    }

    @Test func `advertisements are decoded and their device is never connected`() async throws {
        let bench = try await PeripheralBench(Self.beacon)
        let settings = try await settings("garden-beacon", bench)
        try await bench.withDaemon(", profiles: [garden-beacon]", settings: settings) {
            try await eventually {
                try await value(bench, "SELECT count(DISTINCT value) FROM history WHERE metric = 'temperature'") == "2"
            }
        }
        #expect(try await bench.count("connect") == 0)
        #expect(try await value(bench, "SELECT DISTINCT source FROM history") == "advert")
        let range = "SELECT min(value) || ' ' || max(value) FROM history WHERE metric <> 'rssi'"
        #expect(try await value(bench, range) == "25.0 25.01")
    }
}
