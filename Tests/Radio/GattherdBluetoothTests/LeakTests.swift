import Foundation
import GattherdBluetoothTesting
import GattherdDBus
import GattherdSync
import Testing

@testable import GattherdBlueZ
@testable import GattherdBluetooth

/// Repeated links leak no memory or descriptors, also in the simulator, which is in this process.
@Suite(.timeLimit(.minutes(2)), .serialized) struct LeakTests {
    private static let scenario = """
        timing: {disconnect: 1ms, supervision_timeout: 5ms}
        peripherals:
          - name: p
            address: "C0:FF:EE:00:00:01"
            count: 10
            kind: custom
            connect_latency: 1ms
            resolve_latency: 1ms
            att_latency: 1ms
            rate: 100
            services:
              - uuid: fff0
                characteristics:
                  - {uuid: fff1, properties: [read, write, write-without-response, notify], notify: ["01"]}
                  - {uuid: fff2, properties: [indicate], notify: ["02"]}
        """

    /// The counts of all resources that could leak.
    private struct Traces: Equatable {
        let descriptors: Int
        let matchRules: Int
        let central: [Int]
        let bluez: [Int]

        init(_ central: Central, _ observer: DBusConnection) async throws {
            descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            let rules = try await observer.call(
                "org.freedesktop.DBus",
                "/org/freedesktop/DBus",
                "org.freedesktop.DBus.Debug.Stats",
                "GetAllMatchRules",
                timeout: .seconds(10)
            )
            matchRules = rules.first?.entries?.reduce(0) { $0 + ($1.value.strings?.count ?? 0) } ?? -1
            self.central = central.registry.withLock { registry in
                let links = registry.links.values
                let subscriptions = links.map { $0.state.withLock { $0.subscriptions.count } }
                return [
                    links.count, subscriptions.reduce(0, +), links.count { $0.values.hasListeners },
                    registry.scanners.sorted.count, registry.connectionTasks.count,
                ]
            }
            bluez = await (central.backend as? BlueZCentral)?.entryCounts ?? []
        }
    }

    /// One link of one peripheral, with all that can be done with it, until it is dropped or ended on request.
    private func cycle(_ peripheral: Peripheral, _ name: String, _ number: Int, _ simulator: Simulator) async throws {
        let changes = peripheral.connectionStateChanges()
        try await peripheral.connect()
        let first = try await peripheral.notifications(of: [UInt8].self, from: 0xFFF1)
        let second = try await peripheral.notifications(of: [UInt8].self, from: 0xFFF1)
        try await peripheral.setNotifyValue(true, for: 0xFFF2)
        for try await _ in first.prefix(1) {}
        _ = try await peripheral.readValue(for: 0xFFF1)
        try await peripheral.write([1] as [UInt8], to: 0xFFF1, type: .withoutResponse)
        // Pending operations must end with the link.
        async let late = outcome { try await peripheral.readValue(for: 0xFFF1) }
        if number.isMultiple(of: 2) {
            try await simulator.perform(.drop(name))
        } else {
            try await peripheral.disconnect()
        }
        _ = await late
        for await change in changes where change.reason != nil && !change.isInitial { break }
        withExtendedLifetime(second) {}
    }

    private func cycles(_ range: Range<Int>, _ central: Central, _ simulator: Simulator) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...10 as ClosedRange<UInt64> {
                let address = BluetoothAddress(value: 0xC0FFEE_000000 + number)
                let peripheral = try #require(central.peripheral(address))
                group.addTask {
                    for count in range { try await cycle(peripheral, "p-\(number)", count, simulator) }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test(arguments: [NotificationPath.signals, .socket])
    func `hundreds of links leave no descriptor, no match rule and no entry`(path: NotificationPath) async throws {
        var configuration = Central.Configuration()
        configuration.notificationPath = path
        try await withSimulatedCentral(Self.scenario, configuration: configuration) { central, simulator in
            let bus = try await #require(central.backend as? BlueZCentral).address
            let observer = try await DBusConnection.open(bus, on: EventLoop(name: "observer"))
            try await cycles(0..<2, central, simulator)
            let before = try await Traces(central, observer)
            try await cycles(0..<20, central, simulator)
            // Background work ends a moment later.
            var after = try await Traces(central, observer)
            for _ in 0..<1000 where after != before {
                try await Task.sleep(for: .milliseconds(50))
                after = try await Traces(central, observer)
            }
            #expect(after == before)
            await observer.close()
        }
    }
}
