import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import GattherdLog
import GattherdModel
import GattherdSimulator
import GattherdSync
import TestKit
import Testing

/// The central on the virtual bluetoothd, which behaves as the real one does.
@Suite(.timeLimit(.minutes(3))) struct SimulatedTests {
    private static let scenario = """
        peripherals:
          - {name: strap, address: "C0:FF:EE:00:00:01", kind: heart-rate, rate: 0, battery: 97}
          - {name: dial, address: "C0:FF:EE:00:00:02", kind: number-service, value: 42}
        """

    private struct Neighbourhood {
        let simulator: Simulator
        let central: BlueZCentral
        let events: EventReader
        let sink = RecordingSink()

        func peripheral(_ octet: Int) async throws -> PeripheralStatus {
            let address = try #require(BluetoothAddress("C0:FF:EE:00:00:0\(octet)"))
            let event = try await events.next { event in
                if case .peripheralChanged(let status) = event { status.id.address == address } else { false }
            }
            guard case .peripheralChanged(let status) = event else { throw Stage.NotThere() }
            return status
        }

        /// Scans until the peripheral is seen.
        func find(_ octet: Int) async throws -> PeripheralID {
            let event = try await events.next { if case .adapterChanged = $0 { true } else { false } }
            guard case .adapterChanged(let adapter) = event else { throw Stage.NotThere() }
            try await central.startDiscovery(on: adapter.address)
            return try await peripheral(octet).id
        }

        func connect(_ id: PeripheralID, _ uuid: BluetoothUUID) async throws -> RemoteCharacteristic {
            try await central.connect(id, timeout: .seconds(20))
            let table = try await central.characteristics(of: id, timeout: .seconds(20))
            return try #require(table.first { $0.uuid == uuid })
        }

        func subscribe(_ characteristic: RemoteCharacteristic, _ path: NotificationPath) async throws {
            try await central.subscribe(to: characteristic, by: path, token: SubscriptionToken(1), sink: sink)
        }

        func notify(_ count: Int) async throws {
            for number in 0..<count {
                let octets = [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
                try await simulator.perform(.notify("strap", characteristic: Stage.measurement, octets))
            }
        }
    }

    private func run(_ body: (Neighbourhood) async throws -> Void) async throws {
        let bus = try PrivateBus()
        let simulator = try Simulator(try Scenario(Self.scenario, file: "test.yaml"), on: .address(bus.address))
        let central = BlueZCentral(bus: .address(bus.address), log: .silent)
        let result: Result<Void, any Error> = await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await simulator.run() }
            group.addTask { await central.run() }
            defer { group.cancelAll() }
            do {
                try await body(
                    Neighbourhood(simulator: simulator, central: central, events: EventReader(central.events))
                )
                await central.close()
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    /// A socket holds 278 notifications: fewer all arrive even without a reader.
    @Test(arguments: [(NotificationPath.signals, 1000), (.socket, 250)])
    func `every notification arrives once, in order`(path: NotificationPath, count: Int) async throws {
        try await run { simulated in
            let id = try await simulated.find(1)
            try await simulated.subscribe(try await simulated.connect(id, Stage.measurement), path)
            try await simulated.notify(count)
            let values = await simulated.sink.values(count)
            #expect(values == (0..<count).map { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] })
        }
    }

    @Test(arguments: [NotificationPath.signals, .socket])
    func `a reconnected link delivers all notifications`(path: NotificationPath) async throws {
        try await run { simulated in
            let id = try await simulated.find(1)
            for round in 1...3 {
                try await simulated.subscribe(try await simulated.connect(id, Stage.measurement), path)
                try await simulated.notify(10)
                #expect(await simulated.sink.values(round * 10).count == round * 10)
                try await simulated.simulator.perform(.drop("strap"))
                try await simulated.events.expect(.disconnected(id))
            }
        }
    }

    @Test func `a value is read and written, and its echo is not a notification`() async throws {
        try await run { simulated in
            let id = try await simulated.find(2)
            let number = try #require(BluetoothUUID("7a4b0001-999f-4717-b63a-066e06971f59"))
            let characteristic = try await simulated.connect(id, number)
            try await simulated.subscribe(characteristic, .signals)
            #expect(try await simulated.central.read(characteristic) == [42])
            try await simulated.central.write([7], to: characteristic, withResponse: true)
            #expect(try await simulated.central.read(characteristic) == [7])
            let central = simulated.central
            let tooLong = await outcome { () throws(BluetoothError) in
                try await central.write([1, 2], to: characteristic, withResponse: true)
            }
            #expect(tooLong.kind == .invalidLength)
            #expect(!simulated.sink.values.contains([42]))
        }
    }

    @Test func `a failed attempt has the reason, and the next succeeds`() async throws {
        try await run { simulated in
            let id = try await simulated.find(1)
            let failure = "org.bluez.Error.Failed: le-connection-abort-by-local"
            try await simulated.simulator.perform(
                .failNext(target: "strap", method: "Connect", error: failure, times: 1)
            )
            let central = simulated.central
            let result = await outcome { () throws(BluetoothError) in
                try await central.connect(id, timeout: .seconds(20))
            }
            #expect(result.kind == .connectionFailed)
            try await simulated.simulator.perform(
                .failNext(target: "strap", method: "ConnectedSignal", error: "", times: 1)
            )
            _ = try await simulated.connect(id, Stage.measurement)
        }
    }

    @Test func `an adapter that is switched off and on, and a restarted bluetoothd, are survived`() async throws {
        try await run { simulated in
            let id = try await simulated.find(1)
            _ = try await simulated.connect(id, Stage.measurement)
            try await simulated.simulator.perform(.setPowered(adapter: "hci0", false))
            try await simulated.events.expect(.disconnected(id))
            try await simulated.simulator.perform(.setPowered(adapter: "hci0", true))
            _ = try await simulated.find(1)
            _ = try await simulated.connect(id, Stage.measurement)
            for isGraceful in [false, true] {
                try await simulated.simulator.perform(.restartDaemon(isGraceful: isGraceful, downtime: .zero))
                try await simulated.events.next { if case .unavailable = $0 { true } else { false } }
                try await simulated.events.expect(.available)
                let found = try await simulated.find(1)
                _ = try await simulated.connect(found, Stage.measurement)
            }
        }
    }

    @Test func `a changed table is published and read again`() async throws {
        try await run { simulated in
            let id = try await simulated.find(1)
            var before = [try await simulated.connect(id, Stage.measurement)]
            for change in 1...2 {
                try await simulated.simulator.perform(.changeServices("strap", without: []))
                try await simulated.events.next { if case .servicesChanged(id) = $0 { true } else { false } }
                let after = try await simulated.central.characteristics(of: id, timeout: .seconds(20))
                #expect(!after.isEmpty && Set(after).isDisjoint(with: before), "change \(change)")
                before = after
            }
        }
    }
}
