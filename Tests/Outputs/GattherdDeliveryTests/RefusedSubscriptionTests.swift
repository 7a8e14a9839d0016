import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdDelivery

/// Subscriptions that the broker refuses.
@Suite(.timeLimit(.minutes(1))) struct RefusedSubscriptionTests {
    private static let refused = MQTTReason(rawValue: 0x87)

    @Test func `a refused subscription is tried again after growing pauses`() {
        var subscriptions = RefusedSubscriptions(DeliveryMachine.Options())
        var pauses: [Duration?] = []
        for _ in 0..<9 {
            pauses.append(subscriptions.answered(.subscribeToRequests, to: "a/+/+/set", Self.refused))
            subscriptions.retry(.subscribeToRequests)
        }
        #expect(pauses == [10, 20, 40, 80, 160, 320, 600, 600, 600].map { .seconds($0) })
        #expect(subscriptions.problem == .init(filter: "a/+/+/set", reason: "not authorized"))
        _ = subscriptions.answered(.subscribeToRequests, to: "a/+/+/set", .success)
        #expect(subscriptions == RefusedSubscriptions(DeliveryMachine.Options()))
    }

    @Test func `several refused filters of one state cause one attempt`() {
        var subscriptions = RefusedSubscriptions(DeliveryMachine.Options())
        #expect(subscriptions.answered(.subscribeToRequests, to: "a", Self.refused) != nil)
        #expect(subscriptions.answered(.subscribeToRequests, to: "b", Self.refused) == nil)
        _ = subscriptions.answered(.subscribeToRequests, to: "a", .success)
        #expect(subscriptions.problem?.filter == "b")
    }

    @Test func `searches for retained messages do not count as a problem of the output`() {
        var subscriptions = RefusedSubscriptions(DeliveryMachine.Options())
        #expect(subscriptions.answered(.subscribeToRetained, to: "a", Self.refused) != nil)
        #expect(subscriptions.answered(.search(filter: "b"), to: "b", Self.refused) == nil)
        #expect(subscriptions.problem == nil)
    }

    @Test func `the default birth topic may be forbidden when another prefix of discovery is set`() {
        var subscriptions = RefusedSubscriptions(DeliveryMachine.Options())
        let topic = "homeassistant/status"
        #expect(subscriptions.answered(.subscribeToDefaultBirth, to: topic, Self.refused) == nil)
        #expect(subscriptions.problem == nil)
        #expect(subscriptions.answered(.subscribeToBirth, to: topic, Self.refused) != nil)
        #expect(subscriptions.problem?.filter == topic)
    }

    @Test func `the log names the loss that a refused subscription causes`() {
        let lines = Locked<[String]>([])
        let log = Log(threshold: .debug) { entry in lines.withLock { $0.append(entry.message) } }
        let logger = DeliveryLogger(DeliverySettings(gateway: "lab", host: "localhost"), log) { _ in }
        logger.refusedSubscription("gattherd/lab/+/+/set", isNeeded: true)
        logger.refusedSubscription(Topics(base: "gattherd/lab").stateFilter, isNeeded: false)
        logger.refusedSubscription("gattherd/lab/+/availability", isNeeded: false)
        let losses = ["messages to the gateway are lost", "loss of its retained messages", "are not cleared"]
        #expect(zip(lines.withLock { $0 }, losses).count { $0.contains($1) } == 3)
    }

    @Test func `a broker without wildcards gets no subscriptions with them, and receives readings`() async throws {
        let filters = Locked<[String]>([])
        let broker = try FakeBroker { client, _ in
            client.accept(properties: [0x28, 0])
            client.serve { packet in
                guard packet.kind == .subscribe else { return }
                filters.withLock { $0.append(String(decoding: packet.body.dropFirst(5).dropLast(), as: UTF8.self)) }
            }
        }
        let fixture = DeliveryFixture(try Broker())
        fixture.log.commit(3)
        let delivery = broker.delivery(fixture)
        await delivery.running {
            await fixture.log.waitForCursor(3)
            #expect(delivery.status.problem?.contains("wildcard subscriptions not supported") == true)
        }
        #expect(filters.withLock { $0 } == ["homeassistant/status"])
        #expect(delivery.counters.connects.value == 1)
    }

    @Test func `a subscription beyond the broker's packet limit is refused, and others follow`() async throws {
        let filters = Locked<[String]>([])
        let broker = try FakeBroker { client, _ in
            client.accept(properties: [0x27, 0, 0, 0, 60])
            client.serve { packet in
                guard packet.kind == .subscribe else { return }
                filters.withLock { $0.append(String(decoding: packet.body.dropFirst(5).dropLast(), as: UTF8.self)) }
            }
        }
        let prefix = String(repeating: "p", count: 60)
        let delivery = broker.delivery(DeliveryFixture(try Broker())) { $0.homeAssistant.prefix = prefix }
        try await delivery.running {
            try await eventually { delivery.status.problem?.contains("\(prefix)/status' (packet too large)") == true }
            try await eventually { filters.withLock { $0.contains("gattherd/lab/bridge/request/+") } }
            #expect(delivery.status.problem?.hasSuffix("raise the broker's limit of packets") == true)
        }
        #expect(delivery.counters.connects.value == 1)
    }

    @Test func `requests are received once the broker accepts the subscription`() async throws {
        let attempts = Locked(0)
        let isRepaired = Locked(false)
        let broker = try FakeBroker { client, _ in
            client.accept()
            while let packet = client.next() {
                let isRequests = packet.kind == .subscribe && packet.body.suffix(5).starts(with: "/set".utf8)
                if isRequests { attempts.withLock { $0 += 1 } }
                guard isRequests, !isRepaired.withLock({ $0 }) else {
                    client.answer(packet)
                    continue
                }
                client.send([0x90, 4] + packet.body.prefix(2) + [0, 0x87])
            }
        }
        let delivery = broker.delivery(DeliveryFixture(try Broker()))
        try await delivery.running {
            try await eventually { attempts.withLock { $0 } > 1 }
            try await eventually { delivery.status.problem?.contains("/+/+/set") == true }
            isRepaired.withLock { $0 = true }
            try await eventually { delivery.status.problem == nil }
        }
        #expect(delivery.counters.connects.value == 1)
    }
}
