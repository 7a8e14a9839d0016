import GattherdLog
import GattherdMQTT
import GattherdModel
import Testing

@testable import GattherdDelivery

/// The states that changes queue, without a broker.
@Suite struct AnnouncementsTests {
    private static let addresses = ["strap": "C0:FF:EE:00:00:01", "lamp": "C0:FF:EE:00:00:02"]
    private static let context = DeliveryContext(
        DeliverySettings(gateway: "lab", host: "localhost"),
        DeliveryCounters(),
        DeliveryLogger(DeliverySettings(gateway: "lab", host: "localhost"), .silent) { _ in }
    )

    private var queue = PublishQueue()
    private var announcements = Announcements(context)

    private mutating func apply(_ change: (inout DeliveryChanges) -> Void) -> [String] {
        var changes = DeliveryChanges()
        change(&changes)
        return announcements.apply(changes, &queue)
    }

    private mutating func startSession() {
        queue.startSession()
        announcements.startSession(&queue)
    }

    /// Dequeues all states.
    private mutating func states() -> [PublishQueue.State] {
        var states: [PublishQueue.State] = []
        while case .state(let state) = queue.next(isCleanUpAllowed: true, isDeferred: { _ in false }) {
            states.append(state)
        }
        return states
    }

    private mutating func payloads(_ state: PublishQueue.State) -> [String] {
        announcements.packets(of: state).compactMap { packet in
            guard case .retained(_, let payload, _) = packet else { return nil }
            return String(decoding: payload, as: UTF8.self)
        }
    }

    private mutating func receive(_ topic: String, isRetained: Bool = true) -> String? {
        let message = BrokerMessage(topic: topic, payload: [0x31], length: 1, isRetained: isRetained)
        return announcements.receive(message, &queue)
    }

    @Test mutating func `a session starts with all states, and online is the last`() {
        _ = apply { changes in
            changes.enrolled = Self.addresses
            changes.info = Array("{}".utf8)
            changes.update(DeliveryFixture.status("strap", .ready))
            changes.describe(DeviceDescription(device: "strap", address: "C0:FF:EE:00:00:01", streams: []))
        }
        startSession()
        #expect(
            states() == [
                .info, .health, .alerts, .connection(device: "strap"), .availability(device: "strap"),
                .gatewayDiscovery, .discovery(device: "strap"),
                .subscribeToRetained, .subscribeToBirth, .subscribeToRequests, .subscribeToState, .online,
            ]
        )
    }

    private mutating func receive(state: String, isRetained: Bool = false, at now: Duration = .zero) {
        let payload = Array(state.utf8)
        let message = BrokerMessage(
            topic: "gattherd/lab/bridge/state",
            payload: payload,
            length: payload.count,
            isRetained: isRetained
        )
        _ = announcements.receive(message, &queue)
        announcements.repeatStates(&queue, at: now)
    }

    @Test mutating func `online is published again when a late will overwrites it, a few times at once`() {
        startSession()
        _ = states()
        receive(state: "online")
        receive(state: "offline", isRetained: true)
        #expect(states().isEmpty)
        for _ in 0..<3 {
            receive(state: "offline")
            #expect(states() == [.online])
        }
        for _ in 0..<100 { receive(state: "offline") }
        #expect(states().isEmpty)
        #expect(announcements.repetitionTime == .seconds(10))
        announcements.repeatStates(&queue, at: .seconds(10))
        #expect(states() == [.online] && announcements.repetitionTime == nil)
        announcements.goOffline(&queue)
        _ = states()
        receive(state: "offline", at: .seconds(60))
        #expect(states().isEmpty && announcements.repetitionTime == nil)
    }

    /// A broker with MQTT 5 compares client ids, and that of the last will is the gateway's.
    @Test mutating func `the gateway receives its own late last will, but not its final offline`() {
        startSession()
        for case .subscription(_, let options) in announcements.packets(of: .subscribeToState) {
            #expect(!options.excludesOwn && !options.excludesRetained)
        }
        _ = states()
        announcements.goOffline(&queue)
        #expect(states() == [.unsubscribeFromState, .offline])
        #expect(!announcements.packets(of: .unsubscribeFromState).isEmpty)
    }

    @Test mutating func `a flood of births publishes the discovery payloads three times, then once in 10 s`() {
        startSession()
        _ = states()
        let birth = BrokerMessage(
            topic: "homeassistant/status",
            payload: Array("online".utf8),
            length: 6,
            isRetained: false
        )
        var count = 0
        for second in 0..<100 {
            for _ in 0..<10 {
                _ = announcements.receive(birth, &queue)
                announcements.repeatStates(&queue, at: .seconds(second))
                count += states().count { $0 == .gatewayDiscovery }
            }
        }
        #expect((11...13).contains(count))
    }

    @Test(arguments: ["ha/status", "homeassistant/status"])
    mutating func `a birth is noticed with another prefix of discovery too`(topic: String) {
        var settings = DeliverySettings(gateway: "lab", host: "localhost")
        settings.homeAssistant.prefix = "ha"
        let logger = DeliveryLogger(settings, .silent) { _ in }
        announcements = Announcements(DeliveryContext(settings, DeliveryCounters(), logger))
        startSession()
        _ = states()
        let filters = announcements.topics(of: .subscribeToBirth) + announcements.topics(of: .subscribeToDefaultBirth)
        #expect(filters.contains(topic))
        let birth = BrokerMessage(topic: topic, payload: Array("online".utf8), length: 6, isRetained: false)
        _ = announcements.receive(birth, &queue)
        announcements.repeatStates(&queue, at: .zero)
        #expect(states() == [.gatewayDiscovery])
    }

    @Test(arguments: [true, false])
    mutating func `a broker without retained messages gets the states again when Home Assistant starts`(
        canRetain: Bool
    ) {
        _ = apply { changes in
            changes.info = Array("{}".utf8)
            changes.update(DeliveryFixture.status("strap", .ready))
        }
        queue.startSession()
        announcements.startSession(canRetain: canRetain, &queue)
        _ = states()
        let payload = Array("online".utf8)
        _ = announcements.receive(
            BrokerMessage(topic: "homeassistant/status", payload: payload, length: 6, isRetained: false),
            &queue
        )
        announcements.repeatStates(&queue, at: .zero)
        let all: [PublishQueue.State] = [
            .info, .health, .alerts, .connection(device: "strap"), .availability(device: "strap"), .gatewayDiscovery,
            .online,
        ]
        #expect(states() == (canRetain ? [.gatewayDiscovery] : all))
    }

    @Test mutating func `an availability is published when it changes, and is offline at the end`() {
        startSession()
        _ = states()
        _ = apply { $0.update(DeliveryFixture.status("strap", .ready)) }
        #expect(states() == [.connection(device: "strap"), .availability(device: "strap")])
        #expect(payloads(.availability(device: "strap")) == ["online"])
        _ = apply { $0.update(DeliveryFixture.status("strap", .ready)) }
        #expect(states() == [.connection(device: "strap")])
        announcements.goOffline(&queue)
        #expect(states() == [.availability(device: "strap"), .unsubscribeFromState, .offline])
        #expect(payloads(.availability(device: "strap")) == ["offline"])
    }

    @Test mutating func `a removed device is cleared, its availability last`() {
        _ = apply { $0.update(DeliveryFixture.status("strap", .ready)) }
        startSession()
        _ = states()
        #expect(apply { $0.remove("strap") } == ["strap"])
        #expect(
            states() == [
                .subscribeToRemoved(device: "strap"), .clear(topic: "gattherd/lab/strap/connection"),
            ]
        )
        for _ in 0..<10 { _ = announcements.finishRemovals(&queue) }
        #expect(states().isEmpty, "the search is not answered")
        announcements.answered(.subscribeToRemoved(device: "strap"), isRefused: false)
        _ = announcements.finishRemovals(&queue)
        #expect(receive("gattherd/lab/strap/heart_rate") == nil)
        #expect(receive("gattherd/lab/strap/availability") == nil)
        #expect(states() == [.clear(topic: "gattherd/lab/strap/heart_rate")], "the broker sends the rest")
        _ = announcements.finishRemovals(&queue)
        #expect(states().isEmpty)
        _ = announcements.finishRemovals(&queue)
        #expect(states() == [.clear(topic: "gattherd/lab/strap/availability")])
        #expect(!announcements.isSearching)
    }

    @Test mutating func `a topic is not cleared once a new device uses it`() {
        startSession()
        _ = apply { $0.remove("strap") }
        _ = apply { $0.update(DeliveryFixture.status("strap", .ready)) }
        #expect(payloads(.clear(topic: "gattherd/lab/strap/availability")) == [])
        #expect(payloads(.clear(topic: "gattherd/lab/strap/heart_rate")) == [""])
        _ = states()
        #expect(receive("gattherd/lab/strap/heart_rate") == nil)
        #expect(states() == [.clear(topic: "gattherd/lab/strap/heart_rate")], "it belongs to the removed device")
        #expect(receive("gattherd/lab/strap/availability") == nil)
        #expect(states() == [])
    }

    @Test mutating func `a retained message of an unknown device removes that device`() {
        _ = apply { $0.enrolled = Self.addresses }
        startSession()
        _ = states()
        #expect(receive("gattherd/lab/scale/availability") == "scale")
        #expect(states().contains(.subscribeToRemoved(device: "scale")))
        #expect(receive("gattherd/lab/lamp/availability") == nil)
        #expect(receive("gattherd/lab/other/availability", isRetained: false) == nil)
        #expect(states() == [])
    }

    @Test mutating func `only removed or changed devices start a search for retained messages`() {
        startSession()
        _ = states()
        _ = apply { $0.enrolled = ["strap": "A"] }
        #expect(states() == [.subscribeToRetained], "the first time")
        _ = apply { $0.enrolled = ["strap": "A", "lamp": "B"] }
        #expect(states() == [])
        _ = apply { $0.enrolled = ["strap": "C", "lamp": "B"] }
        #expect(states() == [.subscribeToRetained])
    }

    @Test mutating func `the number of remembered removed devices is bounded`() {
        var former = FormerDevices(
            Self.context.topics,
            Self.context.home,
            isDiscoverable: true,
            hasDescriptions: false,
            hasLeases: false
        )
        for number in 0..<2 * FormerDevices.maximum { former.remove("device-\(number)", &queue) }
        #expect(former.removed.count == FormerDevices.maximum)
        #expect(former.removed.last == "device-\(2 * FormerDevices.maximum - 1)")
    }

    @Test func `the texts of the Device Information Service are members of a description`() {
        func reading(_ metric: String, _ value: SampleValue, profile: String = "device-information") -> JournalReading {
            let metrics = [MetricDescriptor(name: metric, kind: .state)]
            return JournalReading(
                seq: 1,
                stream: StreamDefinition(device: "a", profile: profile, stream: metric, metrics: metrics),
                time: Timestamp(microseconds: 0),
                source: .read,
                samples: [Sample(metric: 0, value: value)]
            )
        }
        var facts = DeviceFacts()
        let news = [
            reading("firmware_revision", .text("1.0")), reading("firmware_revision", .text("1.0")),
            reading("manufacturer_name", .text("Acme")), reading("serial_number", .text("7")),
            reading("model_number", .text("")), reading("model_number", .text("HR-1"), profile: "other"),
        ].map { facts.record($0) }
        #expect(news == [true, false, true, true, false, false])
        var texts = DeviceFacts.Texts()
        (texts.manufacturer, texts.firmware, texts.serial) = ("Acme", "1.0", "7")
        #expect(facts["a"] == texts)
        facts.remove("a")
        #expect(facts["a"] == DeviceFacts.Texts())
    }

    @Test func `a device removed and added again counts as removed in between`() {
        var changes = DeliveryChanges()
        changes.describe(DeviceDescription(device: "a", address: "A", streams: []))
        changes.remove("a")
        changes.update(DeliveryFixture.status("a", .ready))
        #expect(changes.devices["a"]?.isRemoved == true)
        #expect(changes.devices["a"]?.status?.state == .ready)
        #expect(changes.descriptions.isEmpty)
    }

    @Test func `the first change since the inbox was drained wakes the delivery`() {
        let inbox = DeliveryInbox()
        let wakes = (0..<3).map { number in inbox.write { $0.remove("device-\(number)") } }
        #expect(wakes == [true, false, false])
        #expect(inbox.drain().devices.count == 3)
        #expect(inbox.drain().devices.isEmpty)
        #expect(inbox.write { $0.info = [] })
    }
}
