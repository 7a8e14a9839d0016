import FoundationEssentials
import TestKit
import Testing

/// The files of `config` for Prometheus and Grafana.
@Suite(.timeLimit(.minutes(1))) struct MonitoringFilesTests {
    private static let program = "/usr/bin/promtool"
    private static let hasPromtool: Bool = FileManager.default.isExecutableFile(atPath: program)

    private struct Dashboard: Decodable {
        struct Place: Decodable {
            let x: Int
            let y: Int
            let w: Int
            let h: Int
        }

        struct Target: Decodable {
            let expr: String
        }

        struct Panel: Decodable {
            let id: Int
            let title: String
            let gridPos: Place
            let targets: [Target]?
        }

        let uid: String
        let panels: [Panel]
    }

    private static let config = Checkout.root.appending(path: "config")

    private static let rules = config.appending(path: "prometheus/gattherd.yaml").path

    private static func dashboard() throws -> Dashboard {
        let data = try Data(contentsOf: config.appending(path: "grafana/gattherd.json"))
        return try JSONDecoder().decode(Dashboard.self, from: data)
    }

    private func ask(_ words: String...) async throws -> (Int32, String) {
        let folder = try TemporaryFolder()
        let errors = folder.file("errors")
        let (code, output) = try await Programs.run(Self.program, words, errors: errors)
        return (code, try output + String(contentsOfFile: errors, encoding: .utf8))
    }

    @Test(.enabled(if: hasPromtool, "needs Debian's package prometheus"))
    func `Prometheus accepts the rules`() async throws {
        let (code, output) = try await ask("check", "rules", Self.rules)
        #expect(code == 0, "\(output)")
        #expect(output.contains("SUCCESS: 13 rules found"))
    }

    private static let story = #"""
        rule_files: ['RULES']
        evaluation_interval: 1m
        tests:
          - interval: 1m
            input_series:
              - {series: 'gattherd_device_state{instance="g",device="away",state="ready"}', values: '0x30'}
              - {series: 'gattherd_device_state{instance="g",device="away",state="held"}', values: '0x30'}
              - {series: 'gattherd_device_state{instance="g",device="held",state="ready"}', values: '0x30'}
              - {series: 'gattherd_device_state{instance="g",device="held",state="held"}', values: '1x30'}
              - {series: 'gattherd_device_state{instance="g",device="near",state="ready"}', values: '1x30'}
              - {series: 'gattherd_adapters{instance="g"}', values: '1x30'}
              - {series: 'gattherd_adapter_powered{instance="g",adapter="a"}', values: '0x30'}
              - {series: 'gattherd_adapters{instance="h"}', values: '1x30'}
              - {series: 'gattherd_adapter_powered{instance="h",adapter="a"}', values: '1x30'}
              - {series: 'gattherd_payloads_dropped_total{instance="g"}', values: '0x10 5x20'}
              - {series: 'gattherd_output_up{instance="g",output="influx"}', values: '0x30'}
              - {series: 'gattherd_output_up{instance="g",output="mqtt"}', values: '1x30'}
              - {series: 'gattherd_output_lag_seconds{instance="g",output="influx"}', values: '540+60x30'}
              - {series: 'gattherd_output_lag_seconds{instance="g",output="mqtt"}', values: '1x30'}
            alert_rule_test:
              - alertname: GattherdDeviceNotReady
                eval_time: 20m
                exp_alerts: [{exp_labels: {instance: g, device: away, state: ready, severity: warning}, exp_annotations: {
                  summary: away of g has not been ready for 15 minutes,
                  description: "It is out of reach, off, or its battery is empty; held devices raise no alert. See: gattherd status"}}]
              - alertname: GattherdNoAdapter
                eval_time: 5m
                exp_alerts: [{exp_labels: {instance: g, severity: critical}, exp_annotations: {
                  summary: g has no Bluetooth adapter that is on,
                  description: "No device can be connected. On the host: gattherd status, bluetoothctl list, rfkill"}}]
              - alertname: GattherdOutputDown
                eval_time: 10m
                exp_alerts: [{exp_labels: {instance: g, output: influx, severity: warning}, exp_annotations: {
                  summary: g cannot deliver to its output influx,
                  description: "Readings wait in history, and are delivered when it is back. The reason is in: gattherd status"}}]
              - alertname: GattherdOutputBehind
                eval_time: 10m
                exp_alerts: [{exp_labels: {instance: g, output: influx, severity: warning}, exp_annotations: {
                  summary: the output influx of g is 19m 0s behind,
                  description: "Its receiver is away or too slow. See: gattherd doctor"}}]
              - {alertname: GattherdOutputBehind, eval_time: 3m, exp_alerts: []}
              - {alertname: GattherdReadingsLost, eval_time: 5m, exp_alerts: []}
              - alertname: GattherdReadingsLost
                eval_time: 12m
                exp_alerts: [{exp_labels: {instance: g, severity: critical}, exp_annotations: {
                  summary: g has lost readings, description: "LOST"}}]
        """#

    @Test(.enabled(if: hasPromtool, "needs Debian's package prometheus"))
    func `alerts fire for their faults, and not for devices that were disconnected on request`() async throws {
        let folder = try TemporaryFolder()
        let lost =
            "5 in 15 minutes were dropped, not stored or deleted before delivery; see its events of the kind history"
        let story = Self.story.replacing("RULES", with: Self.rules).replacing("LOST", with: lost)
        let (code, output) = try await ask("test", "rules", folder.write(story, to: "story.yaml"))
        #expect(code == 0, "\(output)")
    }

    @Test(.enabled(if: hasPromtool, "needs Debian's package prometheus"))
    func `Prometheus accepts the queries of the Grafana dashboard`() async throws {
        let queries = try Self.dashboard().panels.flatMap { $0.targets ?? [] }.map(\.expr)
        #expect(queries.count > 20)
        let rules = queries.enumerated().map { index, query in
            let text = query.replacing("$__rate_interval", with: "5m").replacing(/\$[a-z]+/, with: ".*")
            return "      - {record: 'q\(index)', expr: '\(text.replacing("'", with: "''"))'}\n"
        }
        let text = "groups:\n  - name: q\n    rules:\n" + rules.joined()
        let folder = try TemporaryFolder()
        let (code, output) = try await ask("check", "rules", folder.write(text, to: "queries.yaml"))
        #expect(code == 0, "\(output)")
    }

    @Test func `the panels of the Grafana dashboard do not overlap and have unique ids`() throws {
        let panels = try Self.dashboard().panels
        #expect(Set(panels.map(\.id)).count == panels.count)
        var taken: Set<[Int]> = []
        for panel in panels {
            #expect(!panel.title.isEmpty)
            for x in panel.gridPos.x..<panel.gridPos.x + panel.gridPos.w {
                for y in panel.gridPos.y..<panel.gridPos.y + panel.gridPos.h {
                    #expect(x < 24)
                    #expect(taken.insert([x, y]).inserted, "\(panel.title)")
                }
            }
        }
    }
}
