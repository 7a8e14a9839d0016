import GattherdBluetooth
import GattherdDBus
import GattherdLog
import TestKit
import Testing

@testable import GattherdBlueZ

/// The order of events when a client with sockets leaves the bus: in a wrong order bluetoothd 5.66 crashes.
@Suite(.timeLimit(.minutes(3))) struct LeavingTests {
    /// A central with a subscription by a socket.
    private func subscribed(_ stage: Stage) async throws -> SocketPair {
        let characteristic = try await stage.connected()
        let pair = SocketPair()
        await stage.fake.on("AcquireNotify") { _, call in try pair.answer(call) }
        try await stage.subscribe(characteristic, .socket)
        return pair
    }

    /// A weak reference to a pairing delegate.
    private struct OwnedDelegate {
        weak var delegate: AcceptingDelegate?
    }

    @Test func `a closed central releases its pairing delegate`() async throws {
        try await Stage.run { stage in
            var owned = OwnedDelegate()
            do {
                let delegate = AcceptingDelegate()
                owned.delegate = delegate
                await stage.central.answerPairing(with: delegate)
            }
            #expect(owned.delegate != nil)
            await stage.central.close()
            #expect(owned.delegate == nil)
        }
    }

    @Test func `a closed central keeps no pairing delegate`() async throws {
        try await Stage.run { stage in
            await stage.central.close()
            var owned = OwnedDelegate()
            do {
                let delegate = AcceptingDelegate()
                owned.delegate = delegate
                await stage.central.answerPairing(with: delegate)
            }
            #expect(owned.delegate == nil)
        }
    }

    @Test func `a pairing that still connects to the bus ends with the central`() async throws {
        try await Stage.run { stage in
            let central = stage.central
            stage.bus.pause()
            async let pairing = outcome { () throws(BluetoothError) in
                try await central.pair(Stage.peripheral, by: .justWorks, timeout: .seconds(600))
            }
            // The pairing is counted as soon as it waits for the bus, which does not answer.
            try await eventually { await central.entryCounts.contains { $0 > 0 } }
            await central.close()
            #expect(await pairing.kind == .serviceUnavailable)
            #expect(await central.entryCounts.allSatisfy { $0 == 0 })
        }
    }

    private func count(_ member: String, _ stage: Stage) async -> Int {
        await stage.fake.asked.count { $0 == member }
    }

    @Test func `the end of a socket is confirmed before the client leaves, also if it was closed long before`()
        async throws
    {
        try await Stage.run { stage in
            let pair = try await subscribed(stage)
            try await stage.central.unsubscribe(SubscriptionToken(1))
            pair.waitForClose()
            await stage.central.close()
            #expect(await stage.fake.asked.last == "Introspect")
        }
    }

    @Test func `no socket is requested while the client leaves`() async throws {
        try await Stage.run { stage in
            _ = try await subscribed(stage)
            let characteristic = try await stage.connected()
            await stage.fake.hang("Introspect")
            async let closing: Void = stage.central.close()
            await stage.fake.waitForCall("Introspect")
            let result = await outcome { () throws(BluetoothError) in
                try await stage.central.subscribe(
                    to: characteristic,
                    by: .socket,
                    token: SubscriptionToken(2),
                    sink: stage.sink
                )
            }
            #expect(result.kind == .serviceUnavailable)
            #expect(await count("AcquireNotify", stage) == 1)
            try await stage.fake.release()
            await closing
        }
    }

    @Test func `a write socket that comes while the client leaves is closed before the client has left`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected(Stage.control)
            await stage.fake.hang("AcquireWrite")
            let central = stage.central
            async let writing = outcome { () throws(BluetoothError) in
                try await central.writeWithoutResponse([1], to: characteristic)
            }
            await stage.fake.waitForCall("AcquireWrite")
            let pair = SocketPair()
            await stage.fake.on("Introspect") { _, call in
                pair.waitForClose()
                try call.reply()
            }
            async let closing: Void = stage.central.close()
            while await outcome(of: { () throws(BluetoothError) in try await central.rssi(of: Stage.peripheral) }).kind
                != .serviceUnavailable
            {
                await Task.yield()
            }
            try await stage.fake.answerHeldCalls { try pair.answer($0) }
            await closing
            #expect(await writing.kind == .serviceUnavailable)
            #expect(await stage.fake.asked.last == "Introspect")
        }
    }

    @Test func `a cancelled task waits for bluetoothd when it closes the central`() async throws {
        try await Stage.run { stage in
            _ = try await subscribed(stage)
            await cancelled { await stage.central.close() }
            #expect(await stage.fake.asked.last == "Introspect")
        }
    }

    @Test func `a cancelled task waits for bluetoothd when it renews the connection`() async throws {
        try await Stage.run { stage in
            _ = try await subscribed(stage)
            await cancelled { await stage.central.reconnectToBus() }
            try await stage.events.next { if case .unavailable = $0 { true } else { false } }
            try await stage.events.expect(.available)
            #expect(await count("Introspect", stage) == 1)
        }
    }

    @Test func `changes during a renewal are not published, as the next load has them`() async throws {
        try await Stage.run { stage in
            _ = try await subscribed(stage)
            await stage.fake.hang("Introspect")
            async let renewal: Void = stage.central.reconnectToBus()
            await stage.fake.waitForCall("Introspect")
            await stage.fake.setConnected(false)
            await stage.fake.makeRoundTrip()
            try await stage.fake.release()
            await renewal
            try await stage.events.next { if case .unavailable = $0 { true } else { false } }
            let known = stage.events.seen.count
            try await stage.events.expect(.available)
            #expect(!stage.events.seen[known...].contains(.disconnected(Stage.peripheral)))
        }
    }

    /// Performs `operation` in a task that is cancelled.
    private func cancelled(_ operation: @escaping @Sendable () async -> Void) async {
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            await operation()
        }
        task.cancel()
        await task.value
    }

    @Test func `a run that is cancelled while the central closes ends after it`() async throws {
        let bus = try PrivateBus()
        let fake = try await FakeBlueZ(bus.address)
        let central = BlueZCentral(bus: .address(bus.address), log: .silent)
        let stage = Stage(bus: bus, fake: fake, central: central, events: EventReader(central.events))
        let running = Task { await central.run() }
        try await stage.events.expect(.available)
        _ = try await subscribed(stage)
        await fake.hang("Introspect")
        let closing = Task { await central.close() }
        await fake.waitForCall("Introspect")
        running.cancel()
        // Its end would be visible after a few turns.
        for _ in 0..<100 { await central.roundTrip() }
        try await fake.release()
        await closing.value
        await running.value
        #expect(await count("Introspect", stage) == 1)
        await fake.crash()
    }
}

@Suite struct SocketRequestsTests {
    private let id = Stage.peripheral

    @Test func `two requests for one characteristic are pending until both are answered`() {
        var requests = SocketRequests()
        requests.begin("/a", of: id)
        requests.begin("/a", of: id)
        requests.end("/a")
        #expect(requests.pendingPeripheral == id)
        requests.end("/a")
        #expect(requests.pendingPeripheral == nil)
        requests.end("/a")
        #expect(requests.count == 0)
    }

    @Test func `unanswered requests end with the link, but are remembered for the connection`() {
        var requests = SocketRequests()
        #expect(!requests.hasRequested)
        requests.begin("/a", of: id)
        requests.removeAll(of: id)
        #expect(requests.pendingPeripheral == nil)
        #expect(requests.hasRequested)
    }
}

@Suite struct AvailabilityValueTests {
    @Test func `each change of the availability is published once`() {
        var availability = Availability()
        #expect(availability.becomeUnavailable("a") == .unavailable(detail: "a"))
        #expect(availability.becomeUnavailable("a") == nil)
        #expect(availability.becomeUnavailable("b") == .unavailable(detail: "b"))
        #expect(availability.becomeAvailable() == .available)
        #expect(availability.becomeUnavailable("b") == .unavailable(detail: "b"))
    }

    @Test func `denied access is published once until bluetoothd is available`() {
        let denied = DBusError(name: "org.freedesktop.DBus.Error.AccessDenied", message: "no")
        var availability = Availability()
        #expect(availability.recordError(DBusError(name: DBusError.failedName, message: "no")) == nil)
        #expect(availability.recordError(denied) == .accessDenied(detail: "no"))
        #expect(availability.recordError(denied) == nil)
        _ = availability.becomeAvailable()
        #expect(availability.recordError(denied) == .accessDenied(detail: "no"))
    }
}
