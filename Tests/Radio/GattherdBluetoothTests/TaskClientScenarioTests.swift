import BlueZKit
import GattherdBlueZ
import GattherdSync
import TestKit
import Testing

/// Programs with several tasks on the simulator, and in the machine on a real bluetoothd.
///
/// The peripherals' log is the truth.
@Suite(.timeLimit(.minutes(5)), .serialized) struct TaskClientScenarioTests {
    private static let scenario = """
        timing: {disconnect: 10ms, supervision_timeout: 50ms}
        peripherals:
          - name: safe
            address: "C0:FF:EE:00:00:01"
            kind: custom
            connect_latency: 5ms
            advertise: {name: Safe, interval: 20ms}
            services:
              - uuid: fff0
                characteristics:
                  - {uuid: fff1, properties: [write, notify], write: {notify_change: true}}
                  - {uuid: fff2, properties: [read, write], value: "2a"}
          - {name: strap, address: "C0:FF:EE:00:00:02", kind: heart-rate, rate: 20, advertise: {interval: 20ms}}
          - {name: cell, address: "C0:FF:EE:00:00:03", kind: battery, advertise: {interval: 20ms}}
        """

    private static let login: CharacteristicID = 0xFFF1
    private static let drawer: CharacteristicID = 0xFFF2
    private static let safe = BluetoothAddress(value: 0xC0FFEE_000001)
    private static let strap = BluetoothAddress(value: 0xC0FFEE_000002)
    private static let cell = BluetoothAddress(value: 0xC0FFEE_000003)

    private static let quick: Autoconnect = {
        var autoconnect = Autoconnect.whenUnexpected
        autoconnect.minimumDelay = .milliseconds(5)
        autoconnect.maximumDelay = .milliseconds(20)
        return autoconnect
    }()

    private func run(_ body: (Central, any BluetoothStack) async throws -> Void) async throws {
        let stack = try await StackKind.current.start(Self.scenario)
        try await withCentral(on: .address(stack.bus)) { central in
            try await central.waitUntilReady(timeout: .seconds(60))
            try await body(central, stack)
        }
        try await stack.stop()
    }

    /// Sends a new number, and waits until the safe repeats it.
    private static func authenticate(_ safe: Peripheral) async throws {
        let number = UInt32.random(in: 1...UInt32.max)
        _ = try await safe.writeAndListen(number, to: login, as: UInt32.self) { $0 == number }
    }

    /// Writes until it is cancelled, whatever happens to the link.
    private static func use(_ safe: Peripheral) async {
        while !Task.isCancelled {
            do {
                try await safe.write([1] as [UInt8], to: drawer)
            } catch {
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    @Test func `on each link the authentication comes before the writes of all other tasks`() async throws {
        try await run { central, stack in
            let safe = try #require(central.peripheral(Self.safe))
            let changes = safe.connectionStateChanges()
            safe.addConnectionTask { try await Self.authenticate($0) }
            try await safe.connect(timeout: .seconds(60), autoconnect: Self.quick)
            try await safe.write([1] as [UInt8], to: Self.drawer)
            let users = (0..<4).map { _ in Task { await Self.use(safe) } }
            for round in 0..<10 {
                await changes.wait(for: .ready, orPresent: true)
                // The drop comes at different instants: in the authentication, in a write, between two.
                try await Task.sleep(for: .milliseconds(3 * round))
                try await stack.order(["drop", "safe"])
                await changes.wait(for: .disconnected(.remote))
            }
            await changes.wait(for: .ready, orPresent: true)
            try await safe.write([2] as [UInt8], to: Self.drawer)
            for user in users { user.cancel() }
            for user in users { await user.value }
            let links = Self.writesOfLinks(try await stack.truth())
            #expect(links.count >= 11)
            #expect(links.allSatisfy { $0.isEmpty || $0[0] == "fff1" && $0.dropFirst().allSatisfy { $0 == "fff2" } })
            #expect(links.count { $0.count > 1 } >= 2)
        }
    }

    /// The characteristics that were written on each link of the safe, in order.
    private static func writesOfLinks(_ truth: Truth) -> [[String]] {
        var links: [[String]] = []
        for entry in truth.entries where entry.dev == "\(safe)" {
            if entry.event == "connect" { links.append([]) }
            if entry.event == "write", let characteristic = entry.char, !links.isEmpty {
                links[links.endIndex - 1].append(characteristic)
            }
        }
        return links
    }

    @Test func `a link lost in its connection task fails the call, and a kept one is made again`() async throws {
        try await run { central, stack in
            let safe = try #require(central.peripheral(Self.safe))
            let changes = safe.connectionStateChanges()
            let runs = LatestValue(0)
            safe.addConnectionTask { safe in
                runs.update { $0 += 1 }
                try await Self.authenticate(safe)
                guard runs.state.isMultiple(of: 2) else {
                    try await stack.order(["drop", "safe"])
                    while true { _ = try await safe.readValue(for: Self.drawer) }
                }
            }
            let result = await outcome { try await safe.connect(timeout: .seconds(60)) }
            #expect(result.error?.kind == .notConnected)
            #expect(safe.connectionState.reason == .remote && safe.connectionError != nil)
            try await safe.connect(timeout: .seconds(60))
            try await safe.disconnect()
            safe.keepConnected(autoconnect: Self.quick)
            let lost = await changes.wait(for: .disconnected(.remote))
            #expect(lost?.error?.kind == .notConnected)
            await changes.wait(for: .ready)
            await changes.wait(for: .ready)
            #expect(runs.state == 4)
        }
    }

    @Test func `another run adopts links, makes lost ones again, and has their subscriptions and scans`() async throws {
        let stack = try await StackKind.current.start(Self.scenario)
        let bus = BluetoothBus.address(stack.bus)
        let snapshot = try await firstRun(on: bus)
        try await stack.order(["drop", "strap"])
        try await withCentral(on: bus) { central in
            try await central.waitUntilReady(timeout: .seconds(60))
            try await eventually { central.connectedPeripherals().count == 1 }
            let runs = LatestValue(0)
            central.addConnectionTask { _ in runs.update { $0 += 1 } }
            let strap = try #require(central.peripheral(Self.strap))
            let beats = strap.lastingNotifications(of: HeartRateMeasurement.self)
            let restored = try await central.restore(from: snapshot, autoconnect: Self.quick)
            #expect(restored.adopted.map(\.address) == [Self.safe])
            #expect(restored.reconnecting.map(\.address) == [Self.strap])
            #expect(restored.lost.isEmpty)
            #expect(await beats.values.first { _ in true } != nil)
            let safe = try #require(restored.adopted.first)
            #expect(safe.isNotifying(Self.login))
            let scan = try #require(restored.scans.first)
            #expect(try await scan.first().address == Self.cell)
            #expect(runs.state == 2)
        }
        try await stack.stop()
    }

    /// Leaves two links, two subscriptions and a scan.
    private func firstRun(on bus: BluetoothBus) async throws -> CentralSnapshot {
        var configuration = Central.Configuration()
        configuration.keepsLinks = true
        return try await withCentral(on: bus, configuration: configuration) { central in
            try await central.waitUntilReady(timeout: .seconds(60))
            let beats = HeartRateMeasurement.characteristic
            for (address, characteristic) in [(Self.safe, Self.login), (Self.strap, beats)] {
                let peripheral = try await central.connect(address, timeout: .seconds(60))
                try await peripheral.setNotifyValue(true, for: characteristic)
            }
            let scan = central.scan(services: [0x180F]).makeAsyncIterator()
            return withExtendedLifetime(scan) { central.snapshot }
        }
    }
}
