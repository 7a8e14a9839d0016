import FoundationEssentials
import GattherdModel
import GattherdProcess
import TestKit
import Testing

@testable import GattherdHTTP

@Suite(.timeLimit(.minutes(1))) struct MetricsTests {
    private let backend = FakeBackend()

    private func scrape() async -> [String] {
        let answer = await HTTPService(backend).get("/metrics")
        #expect(answer.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
        #expect(answer.text.hasSuffix("\n"))
        return answer.text.split(separator: "\n").map(String.init)
    }

    @Test(arguments: [
        #"gattherd_build_info{version="1.2"} 1"#,
        #"gattherd_adapter_powered{adapter="00:1A:7D:DA:71:13",name="hci0"} 1"#,
        #"gattherd_device_state{device="strap",state="ready"} 1"#,
        #"gattherd_device_state{device="strap",state="waiting"} 0"#,
        #"gattherd_device_state{device="dial",state="backingOff"} 1"#,
        #"gattherd_device_rssi_dbm{device="strap"} -58"#,
        #"gattherd_device_state_change_timestamp_seconds{device="strap"} 1795230000"#,
        "gattherd_history_newest_seq 48", "gattherd_history_writable 1", #"gattherd_output_up{output="mqtt"} 1"#,
        #"gattherd_output_backlog{output="mqtt"} 3"#, #"gattherd_output_lag_seconds{output="mqtt"} 0.25"#,
        #"gattherd_output_delivered_total{output="mqtt"} 45"#, #"gattherd_output_skipped_total{output="mqtt"} 0"#,
        #"gattherd_output_errors_total{output="mqtt"} 0"#, "gattherd_events_dropped_total 0",
        #"gattherd_http_responses_total{code="2xx"} 0"#, "process_start_time_seconds 1795230000",
    ])
    func `the metrics contain the status`(line: String) async {
        #expect(await scrape().contains(line))
    }

    @Test func `leases are metrics, if there are leases`() async {
        #expect(await !scrape().contains { $0.contains("lease") })
        backend.change { status in
            var fleet = DaemonStatus.Fleet()
            (fleet.held, fleet.claims, fleet.answerAge) = (2, 7, 1.5)
            fleet.handovers = ["stronger": 3, "expired": 0]
            fleet.refusedControls = ["other_epoch": 1]
            status.fleet = fleet
        }
        let lines = await scrape()
        for line in [
            "gattherd_leases_held 2", "gattherd_lease_claims_total 7", "gattherd_lease_answer_age_seconds 1.5",
            #"gattherd_lease_handovers_total{cause="stronger"} 3"#,
            #"gattherd_lease_handovers_total{cause="expired"} 0"#,
            #"gattherd_lease_refused_controls_total{reason="other_epoch"} 1"#,
        ] {
            #expect(lines.contains(line), "\(line)")
        }
    }

    @Test func `counters of two outputs of one kind are one family`() async {
        let lines = await scrape().filter { $0.contains("births_total") }
        #expect(
            lines == [
                "# HELP gattherd_births_total Births", "# TYPE gattherd_births_total counter",
                #"gattherd_births_total{output="hall"} 0"#, #"gattherd_births_total{output="yard"} 0"#,
            ]
        )
    }

    @Test func `links are counted by device and by reason`() async {
        let live = LiveStatus()
        for state in [LinkState.ready, .backingOff, .ready] {
            live.update(LiveFixtures.link("strap", state, state == .ready ? nil : .remote))
        }
        let text = await HTTPService(backend, live).get("/metrics").text
        #expect(text.contains("\ngattherd_device_links_total{device=\"strap\"} 2\n"))
        #expect(text.contains("\ngattherd_link_failures_total{reason=\"remote\"} 1\n"))
        #expect(text.contains("\ngattherd_link_failures_total{reason=\"silent\"} 0\n"))
    }

    @Test func `samples of connected devices are exported if enabled`() async {
        let live = LiveStatus()
        let samples = [
            Sample(metric: 0, value: .integer(72)), Sample(metric: 1, value: .boolean(true)),
            Sample(metric: 2, value: .null),
        ]
        live.observe(LiveFixtures.batch(LiveFixtures.stream(), samples))
        live.update(LiveFixtures.link("strap", .ready))
        let labels = #"{device="strap",profile="heart-rate",stream="heart_rate",metric="#
        let text = await HTTPService(FakeBackend(showsSamples: true), live).get("/metrics").text
        #expect(text.contains("\ngattherd_sample\(labels)\"heart_rate\",unit=\"bpm\"} 72\n"))
        #expect(text.contains("\ngattherd_sample\(labels)\"sensor_contact\",unit=\"\"} 1\n"))
        #expect(!text.contains("rr_interval"))
        #expect(!(await HTTPService(backend, live).get("/metrics").text.contains("gattherd_sample")))
        live.update(LiveFixtures.link("strap", .backingOff))
        let later = await HTTPService(FakeBackend(showsSamples: true), live).get("/metrics").text
        #expect(!later.contains("gattherd_sample{"))
    }

    @Test func `the number of sample series is bounded`() async {
        let live = LiveStatus()
        let metrics = (0..<6000).map { MetricDescriptor(name: "m\($0)") }
        let samples = metrics.indices.map { Sample(metric: $0, value: .integer(1)) }
        for device in ["a", "b"] {
            live.observe(LiveFixtures.batch(LiveFixtures.stream(device, metrics: metrics), samples))
            live.update(LiveFixtures.link(device, .ready))
        }
        let text = await HTTPService(FakeBackend(showsSamples: true), live).get("/metrics").text
        #expect(text.split(separator: "\n").count { $0.hasPrefix("gattherd_sample{") } == 10_000)
        #expect(text.contains("\ngattherd_samples_left_out 2000\n"))
    }

    @Test func `unknown numbers are left out`() async {
        backend.change {
            $0.devices[1].rssi = nil
            $0.outputs[0].lag = nil
        }
        let text = await scrape().joined(separator: "\n")
        #expect(!text.contains("rssi_dbm"))
        #expect(!text.contains("lag_seconds"))
    }

    @Test func `each output has its own points, and one that fails is down`() async {
        backend.change {
            var other = DaemonStatus.Output("influx", state: .waiting, target: "http://i:8086")
            (other.backlog, other.skipped, other.errors) = (70, 9, 4)
            $0.outputs.append(other)
        }
        let lines = await scrape()
        for line in [
            #"gattherd_output_up{output="mqtt"} 1"#, #"gattherd_output_up{output="influx"} 0"#,
            #"gattherd_output_backlog{output="influx"} 70"#, #"gattherd_output_skipped_total{output="influx"} 9"#,
            #"gattherd_output_errors_total{output="influx"} 4"#,
        ] { #expect(lines.contains(line), "\(line)") }
    }

    @Test func `without outputs there are no metrics of them`() async {
        backend.change { $0.outputs = [] }
        #expect(!(await scrape().joined().contains("gattherd_output")))
    }

    @Test func `each metric appears once, with help and type before its points`() async throws {
        var families: Set<Substring> = []
        var current: Substring = ""
        for line in await scrape() {
            let words = line.split(separator: " ")
            if line.hasPrefix("# HELP ") {
                current = words[2]
                #expect(families.insert(current).inserted)
            } else if line.hasPrefix("# TYPE ") {
                #expect(words[2] == current)
                #expect((words[3] == "counter") == current.hasSuffix("_total"))
            } else {
                #expect(line.prefix { $0 != "{" && $0 != " " } == current)
                #expect(Double(words.last ?? "") != nil)
            }
        }
        #expect(families.allSatisfy { $0.wholeMatch(of: /[a-z_]+/) != nil })
    }

    @Test func `labels are escaped`() {
        let point = MetricFamily.Point(.infinity, ["name": "a\"b\\c\nd"])
        let text = PrometheusText([MetricFamily("x", .gauge, "a\\b\nc", [point, .init(.nan), .init(-0.5)])])
        let lines = [#"# HELP x a\\b\nc"#, "# TYPE x gauge", #"x{name="a\"b\\c\nd"} +Inf"#, "x NaN", "x -0.5", ""]
        #expect(String(decoding: text.bytes, as: UTF8.self) == lines.joined(separator: "\n"))
    }

    private static let promtool = "/usr/bin/promtool"

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: promtool), "needs Debian's package prometheus"))
    func `promtool accepts the metrics`() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(await HTTPService(backend).get("/metrics").text, to: "metrics")
        let complaints = folder.file("complaints")
        let (code, _) = try await Programs.run(
            "sh",
            ["-c", "\(Self.promtool) check metrics < \(file)"],
            errors: complaints
        )
        #expect(code == 0)
        #expect(try String(contentsOfFile: complaints, encoding: .utf8) == "")
    }
}
