import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdLog
import GattherdModel
import GattherdSync
import Testing

@Suite(.timeLimit(.minutes(1))) struct KeptSubscriptionTests {
    private let one = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
    private let two = OctetProfile("two", service: 0xCCCC, characteristic: 0xDDDD)

    private func notified(_ bench: Bench, _ stream: String) async -> [SampleValue] {
        await bench.store.readings.filter { $0.stream == stream && $0.source == .notify }.flatMap(\.values)
    }

    @Test func `a changed GATT table replaces only the subscriptions that changed`() async throws {
        let bench = try Bench([one, two])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.notify([1])
            bench.central.state.withLock { $0.tables[bench.address]?.removeAll { $0.uuid == 0xDDDD } }
            bench.central.tell.yield(.servicesChanged(bench.id))
            await bench.central.wait(for: .unsubscribe)
            bench.central.notify([2])
            await bench.announcer.wait(for: "strap", .ready, times: 2)
            bench.central.notify([3])
            await bench.store.wait { $0.readings.contains { $0.values == [.integer(3)] } }
            #expect(bench.central.calls.state.count { $0 == .subscribe } == 2)
            #expect(bench.central.calls.state.count { $0 == .unsubscribe } == 1)
            #expect(await notified(bench, "one") == [.integer(1), .integer(2), .integer(3)])
            #expect(await notified(bench, "two") == [.integer(1)])
            #expect(bench.supervisor.counters.interruptions.value == 0)
        }
    }

    @Test func `a reload keeps the subscriptions that both profile versions use`() async throws {
        let bench = try Bench([one, two])
        try await bench.run {
            var other = two
            other.revision = 1
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.notify([1])
            await bench.supervisor.reload(devices: bench.supervisor.devices, profiles: [one, other])
            await bench.announcer.wait(for: "strap", .ready, times: 2)
            bench.central.notify([2])
            await bench.store.wait { $0.readings.count { $0.values == [.integer(2)] } == 2 }
            #expect(bench.central.calls.state.count { $0 == .subscribe } == 2)
            #expect(!bench.central.calls.state.contains(.unsubscribe))
            #expect(await notified(bench, "one") == [.integer(1), .integer(2)])
            #expect(await notified(bench, "two") == [.integer(1), .integer(2)])
        }
    }

    @Test func `a reload with another profile clears the undecodable streams`() async throws {
        let bench = try Bench([one])
        try await bench.run {
            var other = one
            other.revision = 1
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.state.withLock { $0.readValue = [] }
            for _ in 0..<3 { bench.central.notify([]) }
            await bench.store.wait { $0.rejects.count == 3 }
            #expect(bench.supervisor.devices.first?.meter.undecodable.isEmpty == false)
            await bench.supervisor.reload(devices: bench.supervisor.devices, profiles: [other])
            await bench.store.wait { $0.rejects.count == 4 }
            #expect(bench.supervisor.devices.first?.meter.undecodable.isEmpty == true)
        }
    }

    @Test func `a subscription that ends during a link is counted, recorded and renewed`() async throws {
        let bench = try Bench([one])
        bench.central.state.withLock { $0.endingSubscriptions = 1 }
        try await bench.run {
            bench.powerOn()
            await bench.store.wait { $0.events.contains { $0.detail.contains("values may be missing") } }
            #expect(bench.supervisor.counters.interruptions.value == 1)
        }
    }

    @Test func `a link that ends releases all subscriptions`() async throws {
        let bench = try Bench([one, two])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            try await bench.supervisor.disconnect("strap")
            await bench.central.wait(for: .unsubscribe, times: 2)
            #expect(bench.central.state.withLock { $0.sinks.isEmpty })
        }
    }

    @Test func `a device with too many characteristics gets the maximum of streams and an event`() async throws {
        let bench = try Bench([one])
        let table = (0..<65_535).map { number in
            RemoteCharacteristic(
                peripheral: bench.id,
                service: 0xAAAA,
                uuid: 0xBBBB,
                handle: "\(number)",
                properties: [.notify]
            )
        }
        bench.central.state.withLock { $0.tables = [bench.address: table] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            #expect(bench.announcer.descriptions.state["strap"]?.streams.count == 256)
            #expect(bench.announcer.descriptions.state["strap"]?.streams.last?.name == "one_256")
            await bench.store.wait { $0.events.contains { $0.detail.contains("65279 characteristics are not served") } }
        }
    }
}
