import GattherdDelivery
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit

/// A broker, a journal and a delivery between them.
struct DeliveryFixture: Sendable {
    let broker: Broker
    let log: TestLog
    let requests = Locked<[ControlRequest]>([])
    /// The recorded events of the broker connection, as JSON.
    let events = Locked<[String]>([])

    init(_ broker: Broker, log: TestLog = TestLog()) {
        self.broker = broker
        self.log = log
    }

    /// Returns a fixture with a listening broker.
    static func started(settings: [String] = []) async throws -> DeliveryFixture {
        let fixture = DeliveryFixture(try Broker(settings: settings))
        try await fixture.broker.start()
        return fixture
    }

    /// Options with fast retries and no waiting for subscribers, so that tests are short.
    static var options: DeliveryMachine.Options {
        var options = DeliveryMachine.Options()
        options.backoff = Backoff(minimum: .milliseconds(20), maximum: .milliseconds(200))
        options.refusedBackoff = options.backoff
        options.retryPause = .milliseconds(50)
        options.saveInterval = .milliseconds(20)
        options.replay = .milliseconds(100)
        options.reconnectPause = .zero
        options.topics.deferral = .milliseconds(200)
        return options
    }

    /// Returns a delivery that answers every control with the requested value.
    func delivery(
        _ version: DeliverySettings.Version = .v5,
        _ change: (inout DeliverySettings) -> Void = { _ in },
        control: @escaping MQTTDelivery.ControlHandler = { .success($0.value) }
    ) -> MQTTDelivery {
        var settings = DeliverySettings(gateway: "lab", host: "localhost", port: UInt16(broker.port))
        settings.version = version
        settings.options = Self.options
        settings.formerBasePause = .milliseconds(200)
        change(&settings)
        return MQTTDelivery(
            settings,
            readings: log,
            log: .silent,
            setControl: { [requests] request in
                requests.withLock { $0.append(request) }
                return await control(request)
            },
            askBridge: { request in
                switch request {
                case .connect(let device): .success(BridgeReply(Array("{\"connecting\":\"\(device)\"}".utf8)))
                case .disconnect(let device): .failure(BridgeFailure("there is no device '\(device)'"))
                case .history(let request): .success(BridgeReply(Self.history(request)))
                case .health: .success(BridgeReply(Array("{}".utf8)))
                }
            },
            record: { [events] members in
                let event = LifecycleEvent(time: Timestamp(microseconds: 0), kind: "broker", members)
                events.withLock { $0.append(event.detail) }
            }
        )
    }

    /// The recorded events of ended sessions, as JSON.
    var losses: [String] {
        events.withLock { events in events.filter { !$0.hasPrefix(#"{"state":"connected""#) } }
    }

    /// Returns five thousand samples, a second apart.
    static func history(_ request: HistoryRequest) -> HistoryResponse {
        var answer = HistoryResponse(limit: request.limit)
        for second in 0..<5000 as Range<Int64> {
            let isTaken = answer.add(Timestamp(microseconds: second * 1_000_000)) { writer in
                writer.key("device")
                writer.optional(request.device) { $0.string($1) }
                writer.key("value")
                writer.integer(second)
            }
            guard isTaken else { break }
        }
        return answer
    }

    static func status(_ device: String, _ state: LinkState) -> LinkStatus {
        LinkStatus(device: device, state: state, since: Timestamp(microseconds: 0))
    }
}

extension DeliverySettings {
    /// Lets a stop wait for the broker's last answers on a slow machine too; without them it sends no DISCONNECT.
    mutating func stopPatiently() {
        options.stopLimit = .seconds(60)
    }

    /// Uses realistic waiting times, for brokers that restart and the subscribers that lose them.
    mutating func waitInEarnest() {
        options.reconnectPause = DeliveryMachine.Options().reconnectPause
        options.replay = DeliveryMachine.Options().replay
    }
}

extension FakeBroker {
    func delivery(
        _ log: TestLog,
        _ change: (inout DeliverySettings) -> Void = { _ in }
    ) throws -> MQTTDelivery {
        delivery(DeliveryFixture(try Broker(), log: log), .v5, change)
    }

    /// Returns a delivery to the broker that reconnects at once and publishes nothing twice.
    func delivery(
        _ fixture: DeliveryFixture,
        _ version: DeliverySettings.Version = .v5,
        _ change: (inout DeliverySettings) -> Void = { _ in }
    ) -> MQTTDelivery {
        fixture.delivery(version) { settings in
            settings.host = "127.0.0.1"
            settings.port = UInt16(port)
            settings.options.backoff = Backoff(minimum: .milliseconds(1), maximum: .milliseconds(5))
            settings.options.replay = .zero
            change(&settings)
        }
    }
}

extension MQTTDelivery {
    /// Runs the delivery during `body`, then stops it cleanly.
    nonisolated func running(_ body: () async throws -> Void) async rethrows {
        async let running: Void = run()
        try await body()
        await stop(within: .zero)
        await running
    }

    nonisolated func wait(for state: DeliveryMachine.SessionState) async {
        for await session in session.watch() where session == state { return }
    }

    nonisolated func waitForFault() async -> BrokerFault? {
        for await session in session.watch() {
            if case .backingOff(let fault) = session { return fault }
        }
        return nil
    }
}

extension [ReceivedMessage] {
    /// The readings' sequence numbers, in the order of arrival.
    var seqs: [Int64] {
        compactMap { message in
            guard message.payload.hasPrefix("{\"seq\":"), message.topic.hasSuffix("/heart_rate") else { return nil }
            return Int64(message.payload.dropFirst(7).prefix { $0 != "," })
        }
    }

    /// The sequence numbers without repetitions.
    var firstSeqs: [Int64] {
        var seen: Set<Int64> = []
        return seqs.filter { seen.insert($0).inserted }
    }

    func last(on topic: String) -> String? {
        last { $0.topic == "gattherd/lab/" + topic }?.payload
    }

    func count(on topic: String) -> Int {
        count { $0.topic == "gattherd/lab/" + topic }
    }
}
