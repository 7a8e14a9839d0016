import GattherdMQTT
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdDelivery
@testable import GattherdMachines

/// MQTT as one of the outputs.
@Suite struct OutputStatusTests {
    private static func status(_ change: (inout DeliveryStatus) -> Void) -> OutputStatus {
        var status = DeliveryStatus()
        status.session = .connected
        change(&status)
        return OutputStatus(status, target: "mqtt://broker.lan:1883", elapsed: .zero)
    }

    private static func refusal(_ topic: String) -> TopicRefusals.Refusal {
        TopicRefusals.Refusal(topic: topic, reason: "not authorized", retryAt: .zero, pause: .zero)
    }

    @Test func `the next attempt has a time on the wall clock`() throws {
        let status = Self.status { $0.nextTry = .seconds(3600) }
        let next = try #require(status.nextTry)
        let minutes = (next.microseconds - WallClock.microseconds) / 60_000_000
        #expect((50...60).contains(minutes))
    }

    @Test(arguments: [
        ("broker.lan", "mqtt://broker.lan:1883", "mqtts://broker.lan:1883"),
        ("fd00::1", "mqtt://[fd00::1]:1883", "mqtts://[fd00::1]:1883"),
    ])
    func `the target is the broker's URL`(host: String, plain: String, encrypted: String) {
        var settings = DeliverySettings(gateway: "lab", host: host)
        settings.username = "user"
        #expect(settings.target == plain)
        settings.tls = TLSSettings()
        #expect(settings.target == encrypted)
    }

    @Test func `a broken session is waiting, with the broker's error`() {
        let status = Self.status { status in
            status.session = .backingOff(BrokerFault(.unreachable, "connection refused"))
            (status.lastError, status.backlog) = ("connection refused", 12)
            status.refusals = [Self.refusal("gattherd/lab/lamp/state")]
        }
        #expect(status.state == .waiting)
        #expect(status.problem == "connection refused")
        #expect(status.backlog == 12)
    }

    @Test func `refused topics are a problem of a session, with the remedy`() {
        let first = Self.status { $0.refusals = [Self.refusal("gattherd/lab/lamp/state")] }
        let advice = "allow our user to use the gateway's topics"
        #expect(first.state == .connected)
        #expect(first.problem == "refuses 'gattherd/lab/lamp/state' (not authorized); \(advice)")
        let all = Self.status { $0.refusals = ["a", "b", "c"].map(Self.refusal) }
        #expect(all.problem == "refuses 'a' and 2 more (not authorized); \(advice)")
    }

    @Test(arguments: [
        (DeliveryMachine.Pause.reconnected, "waiting a moment for subscribers to return"),
        (.awaitingSubscribers, "waiting for subscribers to return, some seconds at most"),
        (.busy, "waiting for a busy broker"),
    ])
    func `a pause says what readings wait for`(pause: DeliveryMachine.Pause, words: String) {
        #expect(Self.status { $0.pause = pause }.problem == words)
    }

    @Test func `an old record waits since its arrival, but a backlog of an earlier run since its oldest time`() {
        for (head, isLong) in [(0, false), (1, true)] as [(Int64, Bool)] {
            var machine = DeliveryMachine(seed: 1)
            let stream = StreamDefinition(
                device: "strap",
                profile: "p",
                stream: "log",
                metrics: [MetricDescriptor(name: "value")]
            )
            let reading = JournalReading(
                seq: 1,
                stream: stream,
                time: Timestamp(microseconds: 1),
                source: .notify,
                samples: [Sample(metric: 0, value: .integer(1))]
            )
            let events: [DeliveryMachine.Event] = [
                .start, .connected(session: 1, receiveMaximum: 10), .cursorLoaded(0), .headMoved(head), .headMoved(1),
                .fetched([reading], through: 1),
            ]
            for event in events { _ = machine.handle(event, at: .seconds(1)) }
            let board = DeliveryBoard()
            board.show(machine, nil, at: .seconds(1))
            let since = board.status.waitingSince
            #expect(since.map { $0 < Timestamp(microseconds: 1_700_000_000_000_000) } == isLong)
        }
    }

    @Test func `a connected session that delivers has no problem`() {
        #expect(Self.status { $0.lastError = nil }.problem == nil)
    }
}
