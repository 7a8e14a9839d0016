import GattherdBluetooth
import GattherdModel
import TestKit
import Testing

@testable import GattherdGateway
@testable import gattherd

@Suite struct StatusTableTests {
    private static let now = Timestamp(microseconds: 1_795_230_000_000_000)

    private static func status(_ changes: (inout DaemonStatus.Device) -> Void = { _ in }) -> DaemonStatus {
        let history = DaemonStatus.History(at: "g.db", seq: 7)
        var status = DaemonStatus(
            version: "1",
            gateway: "lab",
            started: now.advanced(by: .seconds(-7500)),
            history: history
        )
        let link = LinkStatus(device: "strap", state: .backingOff, since: now.advanced(by: .seconds(-4)))
        var device = DaemonStatus.Device(link, address: "C0:FF:EE:00:00:01", profiles: [])
        device.nextRetry = now.advanced(by: .seconds(8)).rfc3339
        device.reason = "connectFailed"
        device.attempt = 3
        changes(&device)
        status.devices = [device]
        return status
    }

    private static func lines(_ sample: StatusSample) -> [String] { StatusTable(sample).lines.map(\.text) }

    @Test func `a single lost reading is one reading`() {
        var status = Self.status()
        (status.history.unstored, status.history.undelivered) = (1, 2)
        let lines = Self.lines(StatusSample(status, at: Self.now))
        #expect(lines.contains("           1 reading delivered, but not stored"))
        #expect(lines.contains("           2 readings deleted before delivery"))
    }

    @Test func `times are shown relative to now`() {
        let lines = Self.lines(StatusSample(Self.status(), at: Self.now))
        #expect(lines.first == "gateway lab, gattherd 1, started 2h05m ago")
        #expect(
            lines.last
                == "strap   backing off  4s   0         0        -     in 8s     it could not be connected (attempt 3)"
        )
    }

    @Test(
        arguments: LinkState.allCases
    )
    func `attempts are shown only while a link is being made`(state: LinkState) {
        let status = Self.status { ($0.state, $0.attempt) = (state.rawValue, 2) }
        let isTold = Self.lines(StatusSample(status, at: Self.now)).last?.hasSuffix("(attempt 2)") == true
        #expect(isTold == [.connecting, .discovering, .preparing, .backingOff, .failed].contains(state))
    }

    @Test func `a first attempt is not counted`() {
        let status = Self.status { ($0.state, $0.attempt, $0.reason) = ("connecting", 1, nil) }
        #expect(Self.lines(StatusSample(status, at: Self.now)).last?.contains("attempt") == false)
    }

    @Test func `a device that is held has no further reason`() {
        let status = Self.status { ($0.state, $0.reason, $0.detail) = ("held", "requested", nil) }
        #expect(Self.lines(StatusSample(status, at: Self.now)).last?.contains("requested") == false)
    }

    @Test(arguments: [(Int64(3 << 20), "3.0 MiB"), (9 << 30, "9216.0 MiB"), (79 << 30, "79 GiB")])
    func `large sizes are in GiB`(bytes: Int64, text: String) {
        #expect(mebibytes(bytes) == text)
    }

    @Test func `a gateway without devices gets advice`() {
        var status = Self.status()
        status.devices = []
        let advice = Self.lines(StatusSample(status, at: Self.now)).last
        #expect(advice == "no devices: find them with 'gattherd scan', then add one: gattherd add ADDRESS")
    }

    @Test func `pending restarts and failed reloads are shown first`() {
        var status = Self.status()
        status.configuration = .init(restartNeeded: ["mqtt", "http"], error: "g.yaml:1:1: error")
        let lines = Self.lines(StatusSample(status, at: Self.now))
        #expect(lines[1] == "config     changes of mqtt and http wait for a restart: systemctl restart gattherd")
        #expect(
            lines[2] == "config     the configuration was not reloaded: g.yaml:1:1: error; "
                + "run: gattherd check /etc/gattherd/gattherd.yaml"
        )
    }

    @Test func `files that hang are no reason for a check, which would hang too`() {
        var status = Self.status()
        status.configuration = .init(restartNeeded: [], error: "a file system hangs", unread: true)
        let lines = Self.lines(StatusSample(status, at: Self.now))
        #expect(lines[1] == "config     the configuration was not reloaded: a file system hangs")
    }

    @Test(
        arguments: LinkReason.allCases.map(\.rawValue) + [
            "restartDiscovery", "newSession", "powerCycle", "notKnownYet",
        ]
    )
    func `every identifier has a text for people`(name: String) {
        for words in [
            DisplayWords.reason(name), DisplayWords.step(name), DisplayWords.symptom(name), DisplayWords.state(name),
        ] {
            #expect(words.firstMatch(of: /[a-z][A-Z][a-z]/) == nil, "\(words)")
        }
    }

    @Test func `a device whose payloads do not decode is shown with the remedy`() {
        let lines = Self.lines(StatusSample(Self.status { $0.undecodable = ["heart_rate: truncated"] }, at: Self.now))
        let remedy = "firmware of another format? see: gattherd rejects --device strap"
        #expect(lines.last == "strap: all payloads are rejected: heart_rate: truncated; \(remedy)")
    }

    @Test func `each output has a line with its state, its backlog and the next try`() {
        var status = Self.status()
        var mqtt = DaemonStatus.Output("mqtt", state: .connected, target: "mqtt://b:1883")
        mqtt.delivered = 131
        var influx = DaemonStatus.Output("influx", state: .waiting, target: "http://i:8086")
        (influx.backlog, influx.lag, influx.skipped) = (1200, 192.9, 7)
        (influx.error, influx.nextTry) = ("connection refused", Self.now.advanced(by: .seconds(5)).rfc3339)
        status.outputs = [mqtt, influx]
        let lines = StatusTable(StatusSample(status, at: Self.now)).lines
        let texts = [
            "mqtt       mqtt://b:1883 connected, backlog 0, delivered 131",
            "influx     http://i:8086 failing: connection refused, next try in 5s, backlog 1200, lag 3m12s, "
                + "delivered 0, skipped 7",
        ]
        let shown = lines.filter { $0.text.contains("backlog") }
        #expect(shown.map(\.text) == texts)
        #expect(shown.map(\.style) == [.plain, .warning])
    }

    @Test func `rates count readings since the sample before`() {
        let before = StatusSample(Self.status { $0.readings = 10 }, at: Self.now)
        let after = Self.status { $0.readings = 25 }
        let sample = StatusSample(after, at: Self.now.advanced(by: .seconds(2)), after: before)
        #expect(sample.rates == ["strap": 7.5])
        #expect(Self.lines(sample).last?.contains("  25        7.5    0 ") == true)
    }

    @Test func `control characters from BlueZ are replaced and the columns stay aligned`() {
        let sample = StatusSample(Self.status { $0.detail = "a\u{1B}[2J\nb" }, at: Self.now)
        #expect(
            Self.lines(sample).last?.hasSuffix("  it could not be connected: a\u{FFFD}[2J\u{FFFD}b (attempt 3)") == true
        )
    }

    @Test func `a restarted daemon has no rates yet`() {
        var after = Self.status()
        after.started = Self.now.rfc3339
        let before = StatusSample(Self.status { $0.readings = 10 }, at: Self.now)
        #expect(StatusSample(after, at: Self.now.advanced(by: .seconds(1)), after: before).rates == [:])
    }

    @Test(arguments: [
        (0, "0s"), (59, "59s"), (61, "1m01s"), (3599, "59m59s"), (7500, "2h05m"), (86_400 * 9 + 3600 * 4, "9d4h"),
        (-5, "0s"),
    ])
    func `durations have their two largest units`(seconds: Int, words: String) {
        #expect(RelativeTime.length(.seconds(seconds)) == words)
    }
}

@Suite struct ScreenFrameTests {
    private static func shown(_ texts: [String], columns: Int, rows: Int, hasColour: Bool = false) -> [Substring] {
        let frame = ScreenFrame(columns: columns, rows: rows, hasColour: hasColour)
        let text = frame.text(texts.map { StatusTable.Line(text: $0, style: .bad) })
        let body = text.replacing("\u{1B}[?2026h\u{1B}[H", with: "").replacing("\u{1B}[J\u{1B}[?2026l", with: "")
        return body.replacing("\u{1B}[K", with: "").split(separator: "\r\n", omittingEmptySubsequences: false)
    }

    @Test func `a line is cut to the width`() {
        #expect(Self.shown(["12345", "123456"], columns: 5, rows: 9) == ["12345", "1234…"])
    }

    @Test func `hidden lines are counted`() {
        #expect(Self.shown(["1", "2", "3", "4"], columns: 40, rows: 3) == ["1", "2", "… 2 more lines"])
        #expect(Self.shown(["1", "2", "3"], columns: 40, rows: 3) == ["1", "2", "3"])
    }

    @Test func `control characters are replaced`() {
        let shown = Self.shown(["a\u{1B}[2Jb\r\nc\u{9B}d"], columns: 40, rows: 3)
        #expect(shown == ["a\u{FFFD}[2Jb\u{FFFD}\u{FFFD}c\u{FFFD}d"])
    }

    @Test func `colour is optional`() {
        #expect(Self.shown(["1"], columns: 9, rows: 9, hasColour: true) == ["\u{1B}[31m1\u{1B}[0m"])
    }

    @Test func `the screen is drawn without clearing it`() {
        let frame = ScreenFrame(columns: 9, rows: 9, hasColour: false).text([StatusTable.Line(text: "1")])
        #expect(!frame.contains("\u{1B}[2J"))
        #expect(frame.hasSuffix("\u{1B}[J\u{1B}[?2026l"))
    }
}

@Suite struct ControlWordsTests {
    private static var link: LinkStatus {
        var link = LinkStatus(device: "dial", state: .waiting, since: Timestamp(microseconds: 0))
        link.reason = .silent
        return link
    }

    @Test(arguments: [
        (
            ControlError.notReady(device: "dial"),
            "device 'dial' is not ready: waiting, not heard (nothing came from it)"
        ),
        (.refused("it only advertises"), "it only advertises"), (.timedOut, "the device did not answer in time"),
        (.noSuchDevice("dial"), "there is no device 'dial'"),
        (.onlyAdvertises("dial"), "device 'dial' only advertises: it is never connected and has no controls"),
    ])
    func `the error of a control states the outcome`(error: ControlError, words: String) {
        #expect(error.words(Self.link) == words)
    }

    @Test func `a device without a known link is not ready`() {
        #expect(ControlError.notReady(device: "dial").words(nil) == "device 'dial' is not ready")
    }
}

@Suite struct DaemonClientTests {
    /// The message of a command that finds no daemon.
    private func message(_ text: String, in folder: TemporaryFolder) throws -> String? {
        let file = ConfigurationFile(try folder.write(text, to: "gattherd.yaml"))
        let client = DaemonClient(try file.parsed())
        return #expect(throws: CommandFailure.self) { try client.status() }?.message
    }

    @Test func `a command that finds no daemon names a change of the history's path`() throws {
        let folder = try TemporaryFolder()
        let standard = try message("gateway: lab\n", in: folder)
        #expect(standard?.hasSuffix("with this configuration; start it: systemctl enable --now gattherd") == true)
        let moved = try message("history: {path: other.db}\n", in: folder)
        #expect(moved?.hasSuffix("; after a change of history.path: systemctl restart gattherd") == true)
    }

    @Test func `a question about a device of an empty configuration is answered with the first step`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("gateway: lab\n", to: "gattherd.yaml")
        let command = WhyCommand(try Arguments(["strap", "--config", file], for: .why))
        let error = #expect(throws: CommandFailure.self) { try command.run() }
        let words = "no device 'strap'; it has none: find them with 'gattherd scan', then add one: gattherd add ADDRESS"
        #expect(error?.message?.hasSuffix(words) == true)
    }
}

@Suite struct PeripheralClientTests {
    @Test func `a peripheral that is not heard is reported with the adapter, the time and advice`() throws {
        let address = try #require(BluetoothAddress("C0:FF:EE:00:00:09"))
        var central = Central.Configuration()
        let words = PeripheralClient.silence(of: address, central).message
        #expect(words?.contains("09 was not heard within 30s: ") == true)
        central.adapter = .name("hci1")
        let message = PeripheralClient.silence(of: address, central).message
        #expect(
            message?.contains("was not heard by adapter hci1 within 30s: check that it is on, in range and") == true
        )
        #expect(message?.contains("'gattherd scan'") == true && message?.contains("--adapter") == true)
    }
}
