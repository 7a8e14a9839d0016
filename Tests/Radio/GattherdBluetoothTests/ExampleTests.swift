import BluetoothExamples
import GattherdBluetoothTesting
import GattherdSync
import TestKit
import Testing

@testable import BluetoothExamples

/// The example programs of the documentation.
@Suite(.timeLimit(.minutes(2))) struct ExampleTests {
    private static let scenario = """
        timing: {disconnect: 10ms}
        peripherals:
          - name: strap
            address: "C0:FF:EE:00:00:01"
            kind: heart-rate
            rate: 50
            battery: 97
            information: {manufacturer: gattherd}
            energy: true
            advertise: {name: Strap 1, services: [180d, 180f], manufacturer_data: {0x004c: "02 15"}}
          - {name: dial, address: "C0:FF:EE:00:00:02", kind: number-service, value: 42}
          - name: pump
            address: "C0:FF:EE:00:00:03"
            kind: custom
            services:
              - uuid: fff0
                characteristics:
                  - {uuid: fff1, properties: [write, write-without-response, notify], write: {notify_change: true}}
          - name: safe
            address: "C0:FF:EE:00:00:08"
            kind: custom
            services:
              - {uuid: fff0, characteristics: [{uuid: fff1, properties: [write]}]}
              - {uuid: 180f, characteristics: [{uuid: 2a19, properties: [read], value: "2a"}]}
          - name: cell
            address: "C0:FF:EE:00:00:04"
            kind: custom
            services: [{uuid: 180f, characteristics: [{uuid: 2a19, properties: [read, write]}]}]
          - {name: late, address: "C0:FF:EE:00:00:05", kind: battery, present: false}
          - {name: lock, address: "C0:FF:EE:00:00:06", kind: battery, pairing: shows-passkey, passkey: 123456}
          - name: diary
            address: "C0:FF:EE:00:00:07"
            kind: custom
            services: [{uuid: fff0, characteristics: [{uuid: fff1, encrypted: true, value: "07"}]}]
        """

    private func address(_ octet: UInt64) -> BluetoothAddress { BluetoothAddress(value: 0xC0FFEE_000000 + octet) }

    private func run(_ body: (Central) async throws -> Void) async throws {
        try await withSimulatedCentral(Self.scenario) { central, _ in try await body(central) }
    }

    @Test func `the first example prints a battery level`() async throws {
        try await run { central in try await printBatteryLevel(of: central) }
    }

    @Test func `the scanning examples work`() async throws {
        try await run { central in
            let strap = try #require(try await findStrap(central))
            #expect(strap.name == "Strap 1")
            try await watchBeacons(central)
            try await findAgain(central, strap.address)
            #expect(strap.connectionState == .ready)
        }
    }

    @Test func `the connecting examples work`() async throws {
        try await run { central in
            let strap = try #require(central.peripheral(address(1)))
            try await stayConnected(strap)
            let safe = central.peripheral(PeripheralID(adapter: strap.id.adapter, address: address(8)))
            #expect(try await authenticateFirst(safe, [1, 2, 3]) == 42)
            try await safe.disconnect()
            let snapshot = central.snapshot
            #expect(try await continueRun(central, from: snapshot).peripherals == snapshot.peripherals)
            try await handOver(strap)
            #expect(strap.connectionState == .disconnected(.detached))
        }
    }

    @Test func `the value examples work`() async throws {
        try await run { central in
            let strap = try await central.connect(address(1))
            try await printHeartRate(strap)
            try await printStandardValues(strap)
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await followHeartRate(strap) }
                _ = await strap.lastingNotifications(of: HeartRateMeasurement.self).values.first { _ in true }
                group.cancelAll()
            }
            try await resetEnergy(strap)
            try await printTable(strap)
            let cell = try await central.connect(address(4))
            try await copyLevel(from: strap, to: cell)
            #expect(try await cell.read(UInt8.self, from: 0x2A19) == 97)
            let dial = try await central.connect(address(2))
            try await setNumber(dial)
            let pump = try await central.connect(address(3))
            try await send(Array(repeating: 1, count: 2000), to: pump, 0xFFF1)
        }
    }

    @Test func `an example keeps a peripheral that appears later`() async throws {
        try await withSimulatedCentral(Self.scenario) { central, simulator in
            let late = try #require(central.peripheral(address(5)))
            async let kept: Void = keepStrap(central, late.address)
            for await state in late.connectionStateChanges() where state.state == .connecting { break }
            printWaiting(late)
            try await simulator.perform(.appear("late"))
            try await kept
            #expect(late.connectionState == .ready)
        }
    }

    @Test func `the pairing examples work`() async throws {
        try await run { central in
            let lock = try await central.connect(address(6))
            try await pairLock(lock, passkey: "123456")
            try await eventually { lock.isPaired }
            let diary = try await central.connect(address(7))
            #expect(try await readSecret(diary) == [7])
            try await eventually { diary.isPaired }
            try await forgetAllPeripherals(central)
            #expect(try await central.bonds().allSatisfy { !$0.isPaired })
        }
    }

    @Test func `the testing examples survive a drop and a restart`() async throws {
        try await surviveADrop()
        try await surviveARestart()
    }

    @Test func `several runs share one simulated bus`() async throws {
        try await withSimulatedBus(Self.scenario) { bus, simulator in
            for _ in 0..<2 {
                try await withCentral(on: bus) { central in
                    try await central.waitUntilReady()
                    _ = try await central.connect(address(1))
                }
            }
            try await simulator.perform(.vanish("strap"))
        }
    }

    @Test @MainActor func `the demo offers and performs only the actions that the state allows`() async throws {
        let (input, keyboard) = AsyncStream.makeStream(of: String.self)
        let screen = LatestValue("")
        func wait(for text: String) async { for await now in screen.watch() where now.contains(text) { return } }
        try await withSimulatedCentral(Self.scenario) { central, simulator in
            async let demo: Void = runDemo(central, input: input) { screen.set($0) }
            await wait(for: "[Enter] scan")
            keyboard.yield("")
            await wait(for: "Strap 1")
            let line = screen.state.split(separator: "\n").first { $0.contains("Strap 1") }
            keyboard.yield(String(try #require(line?.split(separator: " ").first)))
            await wait(for: "[Enter] connect")
            keyboard.yield("")
            await wait(for: "[Enter] disconnect")
            await wait(for: " bpm")
            try await simulator.perform(.vanish("strap"))
            await wait(for: "last error")
            await wait(for: "[Enter] cancel")
            keyboard.yield("")
            await wait(for: "disconnected (requested)")
            #expect(screen.state.contains("[Enter] connect"))
            keyboard.yield("q")
            await demo
        }
    }

    @Test @MainActor func `the models follow the central`() async throws {
        try await run { central in
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await follow(central) }
                for await state in central.states where state == .poweredOn { break }
                group.cancelAll()
            }
        }
    }
}
