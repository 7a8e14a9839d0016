import GattherdModel
import Testing

@testable import GattherdGateway
@testable import gattherd

@Suite struct DeviceExplanationTests {
    private static let now = Timestamp(microseconds: 1_795_230_000_000_000)

    private static func ago(_ seconds: Int) -> Timestamp { now.advanced(by: .seconds(-seconds)) }

    private static func change(
        _ seconds: Int,
        from: LinkState,
        to: LinkState,
        _ reason: LinkReason? = nil,
        _ detail: String? = nil
    )
        -> LifecycleEvent
    {
        LifecycleEvent(
            time: ago(seconds),
            device: "strap",
            kind: "link",
            [
                "from": .text(from.rawValue), "to": .text(to.rawValue),
                "reason": reason.map { .text($0.rawValue) }, "attempt": .integer(1),
                "detail": detail.map { .text($0) },
            ]
        )
    }

    /// A daemon with one adapter and one device.
    private static func status(
        _ state: LinkState,
        isPowered: Bool = true,
        _ changes: (inout DaemonStatus.Device) -> Void = { _ in }
    ) -> DaemonStatus {
        let history = DaemonStatus.History(at: "g.db", seq: 7)
        var status = DaemonStatus(version: "1", gateway: "lab", started: ago(100), history: history)
        let address = "00:00:00:00:00:01"
        status.adapters = [.init(address: address, name: "hci0", isPowered: isPowered, isDiscovering: true)]
        let link = LinkStatus(device: "strap", state: state, since: ago(12))
        var device = DaemonStatus.Device(link, address: "C0:FF:EE:00:00:01", profiles: [])
        changes(&device)
        status.devices = [device]
        return status
    }

    private static func explain(_ status: DaemonStatus?, _ events: [LifecycleEvent] = []) -> DeviceExplanation {
        let sources = DeviceExplanation.Sources(
            device: "strap",
            address: "C0:FF:EE:00:00:01",
            status: status,
            events: events,
            connectTimeout: .seconds(20)
        )
        return DeviceExplanation(sources, now: now)
    }

    @Test func `a device whose payloads do not decode gets advice`() {
        let status = Self.status(.ready) { $0.undecodable = ["heart_rate: truncated"] }
        let text = Self.explain(status).text
        #expect(text.contains("heart_rate: truncated") && text.contains("gattherd rejects --device strap"))
    }

    @Test func `a device of another gateway is explained by the bids`() {
        let reason = "east hears it with -61 dBm; the lease is free"
        var lease = DaemonStatus.Lease(state: "standby", epoch: 7, reason: reason)
        lease.owner = "east"
        lease.bids = [
            .init(gateway: "east", standing: "linked", rssi: nil, problem: nil),
            .init(gateway: "west", standing: "steady", rssi: -88, problem: "no adapter has a free slot"),
        ]
        let status = Self.status(.disconnected) { device in
            (device.reason, device.detail, device.lease) = ("ownedElsewhere", "owned by gateway east", lease)
        }
        let expected = """
            strap (C0:FF:EE:00:00:01): disconnected, for 12s: this gateway does not own it: owned by gateway east

            Which gateway connects it
                gateway east owns it, with epoch 7: east hears it with -61 dBm; the lease is free
                east has the link
                west cannot own it: no adapter has a free slot

            What comes next
                it is connected here if this gateway gets its lease

            """
        #expect(Self.explain(status).text == expected)
    }

    @Test func `control characters from BlueZ are replaced`() {
        let status = Self.status(.backingOff) { $0.detail = "a\u{1B}[2J\nb" }
        let text = Self.explain(status).text
        #expect(text.hasPrefix("strap (C0:FF:EE:00:00:01): backing off, for 12s: a\u{FFFD}[2J\u{FFFD}b\n"))
    }

    @Test func `a device that only advertises waits to be heard, not to be connected`() {
        let status = { Self.status(.waiting, isPowered: $0) { $0.onlyAdvertises = true } }
        #expect(Self.explain(status(true)).next == "its values are stored when it is heard")
        let text = "its values are stored when it is heard; but there is no adapter that is on"
        #expect(Self.explain(status(false)).next == text)
    }

    @Test func `a device that backs off shows attempts, the next attempt and advice`() {
        let attempts = (0..<5).flatMap { number in
            [
                Self.change(100 - number * 10, from: .backingOff, to: .connecting),
                Self.change(99 - number * 10, from: .connecting, to: .backingOff, .timedOut),
            ]
        }
        let status = Self.status(.backingOff) { device in
            device.reason = "timedOut"
            device.attempt = 5
            device.nextRetry = Self.now.advanced(by: .seconds(8)).rfc3339
            device.lastHeard = Self.ago(61).rfc3339
            device.rssi = -91
        }
        let text = Self.explain(status, [Self.change(200, from: .preparing, to: .ready)] + attempts).text
        let expected = """
            strap (C0:FF:EE:00:00:01): backing off, for 12s: no answer in time, 5 times in a row

            Recent events (UTC)
              2026-11-21
                02:56:40  ready
                02:58:59  last heard, with -91 dBm
                02:59:00  connecting (5 times since 02:58:20)
                02:59:01  attempt failed: no answer in time (5 times since 02:58:21)

            What comes next
                in 8s, at 03:00:08 UTC, it is tried again; at once with: gattherd connect strap

            What may help

            """
        #expect(text.hasPrefix(expected))
        #expect(text.contains("    it may be connected to something else, such as a phone"))
        #expect(text.contains("    its signal is weak (-91 dBm;"))
    }

    @Test func `events of the device and of Bluetooth are in the order of time`() {
        let adapter = LifecycleEvent(
            time: Self.ago(20),
            kind: "adapter",
            ["state": .text("off"), "detail": .text("hci0 00:00:00:00:00:01")]
        )
        let link = Self.change(19, from: .ready, to: .disconnected, .adapterPoweredOff)
        let explanation = Self.explain(Self.status(.disconnected, isPowered: false), [adapter, link])
        #expect(
            explanation.lines.map(\.text) == [
                "adapter hci0 00:00:00:00:00:01 off", "disconnected: the adapter is off",
            ]
        )
        #expect(explanation.advice == ["no Bluetooth adapter is on: gattherd doctor says why"])
    }

    @Test func `a cycle of a flapping link is shown once with counts`() {
        let cycle: [(LinkState, LinkState)] = [
            (.backingOff, .connecting), (.connecting, .discovering), (.discovering, .preparing), (.preparing, .ready),
            (.ready, .backingOff),
        ]
        let events = (0..<50).map { number in
            Self.change(100 - number, from: cycle[number % 5].0, to: cycle[number % 5].1)
        }
        let lines = Self.explain(nil, events).lines
        #expect(lines.map(\.count) == [10, 10, 10, 10, 10])
        #expect(lines.last?.text == "link lost")
    }

    @Test func `a device that is no longer configured was not disconnected by hand`() {
        let change = { Self.change(9, from: .disconnecting, to: .held, .requested, $0) }
        let texts = ["no longer configured", nil].map { Self.explain(nil, [change($0)]).lines.map(\.text) }
        #expect(texts == [["held: no longer configured"], ["held: disconnected by hand"]])
    }

    @Test(arguments: [
        (LinkState.held, "held: a person disconnected it, for 12s", "nothing, until: gattherd connect strap"),
        (.waiting, "waiting, not heard, for 12s", "it is connected when it is heard; an adapter is scanning"),
        (.ready, "ready, for 12s", "its readings are stored as they arrive; the last came 2s ago"),
        (.connecting, "connecting, for 12s", "the attempt succeeds, or is given up after 20s a step"),
        (.failed, "failed, for 12s", "it is tried again when its turn comes"),
    ])
    func `each state has a next step`(state: LinkState, headline: String, next: String) {
        let explanation = Self.explain(Self.status(state) { $0.lastReading = Self.ago(2).rfc3339 })
        #expect(explanation.headline == headline)
        #expect(explanation.next == next)
    }

    @Test func `a device that was never received gets three pieces of advice`() {
        #expect(Self.explain(Self.status(.waiting)).advice.count == 3)
    }

    @Test(arguments: LinkReason.allCases)
    func `each reason of a link is explained in words`(reason: LinkReason) {
        let explanation = Self.explain(Self.status(.backingOff) { $0.reason = reason.rawValue })
        #expect(explanation.headline.contains(reason.words))
        #expect(explanation.advice.allSatisfy { $0.contains(" ") })
    }

    @Test func `without a daemon the events and the start command are shown`() {
        let explanation = Self.explain(nil, [Self.change(5, from: .preparing, to: .ready)])
        #expect(explanation.headline == "no daemon runs with this configuration")
        #expect(explanation.next.hasSuffix("systemctl enable --now gattherd"))
        #expect(explanation.lines.count == 1)
        #expect(JSONWriter.bytes { explanation.writeJSON(to: &$0) }.count > 100)
    }

    private static func output(_ state: OutputStatus.State, lag: Double) -> DaemonStatus.Output {
        var output = DaemonStatus.Output("influx", state: state, target: "http://i:8086")
        (output.backlog, output.lag) = (1200, lag)
        return output
    }

    @Test func `an output that fails or is behind is explained with its remedy`() {
        var failing = Self.output(.waiting, lag: 60)
        (failing.error, failing.nextTry) = ("connection\nrefused", Self.now.advanced(by: .seconds(5)).rfc3339)
        var status = Self.status(.ready)
        status.outputs = [failing, Self.output(.connected, lag: 192), Self.output(.connected, lag: 2)]
        let explanation = Self.explain(status)
        let expected = [
            """
            'influx' does not deliver to http://i:8086: connection\nrefused; 1200 entries wait, the oldest for 1m00s, \
            next try in 5s; correct the receiver, or the section 'influx' of the configuration; waiting entries are delivered then
            """,
            """
            'influx' is behind in delivering to http://i:8086; 1200 entries wait, the oldest for 3m12s; it catches up if \
            the receiver accepts more than arrives: compare 'gattherd status --watch'
            """,
        ]
        #expect(explanation.advice == expected)
        #expect(explanation.text.contains("connection\u{FFFD}refused"))
    }

    @Test func `a gap of an output is an event in words`() {
        let members: KeyValuePairs<String, SampleValue?> = [
            "output": .text("influx"), "state": .text("skipped"), "after": .integer(5), "through": .integer(125),
            "entries": .integer(118), "reason": .text("the backlog was longer than max_backlog"),
        ]
        let gap = LifecycleEvent(time: Self.ago(9), kind: "output", members)
        let other = LifecycleEvent(
            time: Self.ago(8),
            kind: "output",
            ["output": .text("influx"), "state": .text("unavailable"), "error": .text("connection refused")]
        )
        #expect(
            Self.explain(nil, [gap, other]).lines.map(\.text) == [
                "output 'influx' skipped 118 entries, seq 6 to 125: the backlog was longer than max_backlog",
                "output 'influx' unavailable: connection refused",
            ]
        )
    }

    @Test func `a failed task and an unserved stream have their reasons`() {
        let error = "writing to fff2: no answer within 5.0 seconds"
        let events = [
            LifecycleEvent(time: Self.ago(9), device: "strap", kind: "task", ["error": .text(error)]),
            LifecycleEvent(
                time: Self.ago(8),
                device: "strap",
                kind: "stream",
                ["stream": .text("soil"), "error": .text("subscribing to fff1: refused")]
            ),
            LifecycleEvent(time: Self.ago(7), device: "strap", kind: "stream", ["error": .text("too many")]),
        ]
        #expect(
            Self.explain(nil, events).lines.map(\.text) == [
                "a connection task failed: \(error)", "stream 'soil': subscribing to fff1: refused",
                "streams: too many",
            ]
        )
    }

    @Test func `the model is named, and a profile that the configuration lacks is advised`() {
        let status = Self.status(.backingOff) { ($0.model, $0.suggestedProfile) = ("Govee H5075", "govee") }
        let explanation = Self.explain(status)
        #expect(explanation.text.hasPrefix("strap (C0:FF:EE:00:00:01, Govee H5075): "))
        #expect(explanation.advice[0].hasPrefix("it looks like Govee H5075: write 'profiles: [govee]' to the device"))
        #expect(Self.explain(Self.status(.ready) { $0.model = "Govee H5075" }).advice == [])
    }

    @Test func `an event without JSON is shown by its kind`() {
        let event = LifecycleEvent(time: Self.now, device: "strap", kind: "odd", detail: "{")
        #expect(Self.explain(nil, [event]).lines.map(\.text) == ["odd"])
    }
}
