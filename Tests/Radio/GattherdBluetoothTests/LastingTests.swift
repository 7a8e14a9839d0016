import GattherdSync
import TestKit
import Testing

@testable import GattherdBluetooth

@Suite(.timeLimit(.minutes(1))) struct LastingTests {
    private static let quick: Autoconnect = {
        var autoconnect = Autoconnect.when { _ in true }
        autoconnect.minimumDelay = .milliseconds(1)
        autoconnect.maximumDelay = .milliseconds(1)
        return autoconnect
    }()

    /// Text for the first `count` events.
    private func hear<Value>(_ events: LastingNotifications<Value>, _ count: Int) async -> [String] {
        var heard: [String] = []
        for await event in events.prefix(count) {
            switch event {
            case .subscribed: heard.append("subscribed")
            case .value(let value): heard.append("\(value)")
            case .invalid(let error): heard.append("invalid \(error.kind)")
            case .interrupted(let error): heard.append("interrupted \(error.map { "\($0.kind)" } ?? "on request")")
            case .refused(let error): heard.append("refused \(error.kind)")
            }
        }
        return heard
    }

    @Test func `sequences that begin before the first connect have the values of all links, and the gaps`() async throws
    {
        try await Bench.run { bench in
            let strap = try bench.strap
            let numbers = strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            let octets = strap.lastingNotifications(of: [UInt8].self, from: 0x2A37)
            let changes = strap.connectionStateChanges()
            try await bench.connected(autoconnect: Self.quick)
            bench.backend.notify("measurement", [1])
            bench.backend.drop(FakeBackend.strap, .timedOut)
            await changes.wait(for: .ready)
            await changes.wait(for: .ready)
            bench.backend.notify("measurement", [2, 0])
            try await strap.disconnect()
            #expect(
                await hear(numbers, 6) == [
                    "subscribed", "1", "interrupted timed out", "subscribed", "invalid invalid value",
                    "interrupted on request",
                ]
            )
            #expect(await hear(octets, 5).suffix(2) == ["subscribed", "[2, 0]"])
            #expect(bench.backend.asked.state.filter { $0 == "subscribe measurement" }.count == 2)
        }
    }

    @Test func `connection tasks come before lasting subscriptions, and these before ready`() async throws {
        try await Bench.run { bench in
            let beats = try bench.strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            bench.central.addConnectionTask { try await $0.write(UInt8(7), to: 0x2A39) }
            let strap = try await bench.connected()
            #expect(strap.isNotifying(0x2A37))
            #expect(bench.backend.asked.state.suffix(2) == ["write control", "subscribe measurement"])
            withExtendedLifetime(beats) {}
        }
    }

    @Test func `a sequence of a ready link subscribes at once, and the last one ends the subscription`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let beats = strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            #expect(await hear(beats, 1) == ["subscribed"])
            let others = try await strap.notifications(of: UInt8.self, from: 0x2A37)
            beats.stop()
            try await strap.write(UInt8(0), to: 0x2A19)
            #expect(!bench.backend.asked.state.contains("unsubscribe measurement"))
            others.stop()
            await bench.backend.waitUntilAsked("unsubscribe measurement")
            try await strap.disconnect()
            try await strap.connect()
            #expect(bench.backend.asked.state.filter { $0 == "subscribe measurement" }.count == 1)
        }
    }

    @Test func `a missing characteristic is refused, until the services change`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let beats = strap.lastingNotifications(of: UInt8.self, from: 0x2AFF)
            try await bench.connected()
            #expect(strap.connectionState == .ready)
            #expect(await hear(beats, 1) == ["refused unknown attribute"])
            var heart = try #require(Bench.table.first)
            heart.characteristics = heart.characteristics.map { old in
                RemoteCharacteristic(
                    peripheral: old.peripheral,
                    service: old.service,
                    uuid: 0x2AFF,
                    handle: old.handle,
                    properties: old.properties
                )
            }
            bench.backend.setServices([heart])
            bench.backend.say(.servicesChanged(strap.id))
            #expect(await hear(beats, 1) == ["subscribed"])
            #expect(bench.backend.asked.state.filter { $0 == "subscribe measurement" }.count == 1)
        }
    }

    @Test func `a subscription whose characteristic has moved is made again, without a refusal`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let beats = strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            #expect(await hear(beats, 1) == ["subscribed"])
            bench.backend.setServices([try movedService("moved ")])
            bench.backend.endSubscription("measurement")
            #expect(await hear(beats, 2) == ["interrupted unknown attribute", "subscribed"])
            #expect(bench.backend.asked.state.contains("subscribe moved measurement"))
            #expect(bench.backend.asked.state.filter { $0 == "subscribe measurement" }.count == 1)
        }
    }

    @Test func `a characteristic that has moved is subscribed before the whole table is known, each time`() async throws
    {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let beats = strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            #expect(await hear(beats, 1) == ["subscribed"])
            bench.backend.findSuccessors()
            var handle = "measurement"
            for prefix in ["a ", "b "] {
                bench.backend.setServices([try movedService(prefix)])
                bench.backend.endSubscription(handle)
                #expect(await hear(beats, 2) == ["interrupted unknown attribute", "subscribed"])
                handle = prefix + "measurement"
                #expect(bench.backend.asked.state.last == "subscribe \(handle)")
                bench.backend.say(.servicesChanged(strap.id))
            }
            #expect(bench.backend.asked.state.filter { $0 == "services" }.count == 1)
        }
    }

    /// The service of the strap's table, with other handles.
    private func movedService(_ prefix: String) throws -> RemoteService {
        var heart = try #require(Bench.table.first)
        heart.characteristics = heart.characteristics.map { old in
            RemoteCharacteristic(
                peripheral: old.peripheral,
                service: old.service,
                uuid: old.uuid,
                handle: prefix + old.handle,
                properties: old.properties
            )
        }
        return heart
    }

    @Test func `a subscription that the peripheral ends is made again, at most five times on a link`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let beats = strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            for _ in 0..<5 {
                #expect(await hear(beats, 1) == ["subscribed"])
                bench.backend.endSubscription("measurement")
                #expect(await hear(beats, 1) == ["interrupted unknown attribute"])
            }
            try await strap.write(UInt8(0), to: 0x2A19)
            #expect(bench.backend.asked.state.filter { $0 == "subscribe measurement" }.count == 5)
            try await strap.disconnect()
            try await strap.connect()
            #expect(await hear(beats, 1) == ["subscribed"])
        }
    }

    @Test(arguments: [(Duration.seconds(3600), 5), (.zero, 100)])
    func `only subscriptions that do not last are limited in number`(stableAfter: Duration, maximum: Int) {
        let listener = LastingListener(0x2A37, .bufferingNewest(1), stableAfter: stableAfter)
        var joins = 0
        while joins < 100, listener.beginJoining() {
            joins += 1
            listener.confirm()
            listener.end(.ended(BluetoothError(.unknownAttribute, "ended")))
        }
        #expect(joins == maximum)
    }

    @Test(arguments: [
        BluetoothError(.timedOut, "no answer"), BluetoothError(.att(0x0E), "no"), BluetoothError(.busy, "wait"),
        BluetoothError(.notConnected, "Not connected"),
    ]) func `a subscription that fails for the moment is tried again on the same link`(
        error: BluetoothError
    ) async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.fail("subscribe", error)
            let beats = strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            #expect(await hear(beats, 1) == ["subscribed"])
            #expect(bench.backend.asked.state.filter { $0 == "subscribe measurement" }.count == 2)
        }
    }

    @Test func `a subscription that fails for the moment, each time, is refused in the end`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let busy = BluetoothError(.busy, "wait")
            bench.backend.fail("subscribe", busy, busy, busy, busy, busy, busy)
            let beats = strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            #expect(await hear(beats, 1) == ["refused busy"])
            #expect(bench.backend.asked.state.filter { $0 == "subscribe measurement" }.count == 5)
        }
    }

    @Test(arguments: [false, true])
    func `a refusal on an earlier link or table says nothing about the next`(isReset: Bool) {
        let listener = LastingListener(0x2A37, .bufferingNewest(1))
        #expect(listener.beginJoining())
        if isReset { listener.reset() }
        let pause = listener.fail(BluetoothError(.authentication, "no"))
        #expect(listener.canJoin == isReset && (pause != nil) == isReset)
    }

    @Test func `cancelling all operations does not end a lasting sequence`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.hang("read")
            async let read = outcome { try await strap.readValue(for: 0x2A19) }
            await bench.backend.waitUntilAsked("read level")
            let beats = strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            try await eventually { bench.central.link(strap.id)?.operations.count == 2 }
            strap.cancelAllOperations()
            #expect(await read.error?.kind == .cancelled)
            #expect(await hear(beats, 1) == ["subscribed"])
        }
    }

    @Test(arguments: DisconnectReason.allCases.filter { $0 != .requested && $0 != .detached })
    func `a gap has the reason of the loss`(reason: DisconnectReason) async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let beats = strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            #expect(await hear(beats, 1) == ["subscribed"])
            let changes = strap.connectionStateChanges()
            bench.backend.drop(FakeBackend.strap, reason)
            let lost = await changes.wait(for: .disconnected(reason))
            guard case .interrupted(let error) = await beats.first(where: { _ in true }) else {
                return #expect(Bool(false), "no gap")
            }
            #expect(error == lost?.error && error != nil)
        }
    }

    @Test func `values come without the events, and the sequence ends with the central`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let beats = strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            try await bench.connected()
            for octets in [[1], [2, 2], [3]] as [[UInt8]] { bench.backend.notify("measurement", octets) }
            var seen: [UInt8] = []
            for await value in beats.values.prefix(2) { seen.append(value) }
            #expect(seen == [1, 3])
            async let rest = hear(beats, 100)
            await bench.central.close()
            #expect(await rest == ["interrupted on request"])
        }
    }
}
