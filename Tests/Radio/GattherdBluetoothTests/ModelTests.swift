import GattherdLog
import GattherdSync
import Observation
import Testing

@testable import GattherdBluetooth

@Suite(.timeLimit(.minutes(1))) @MainActor struct ModelTests {
    /// Waits until `value` is `expected`, by observation alone.
    private func wait<Value: Equatable & Sendable>(
        until expected: Value,
        _ value: @escaping @MainActor @Sendable () -> Value
    ) async {
        while !Task.isCancelled {
            let (changes, change) = AsyncStream.makeStream(of: Void.self)
            let now = withObservationTracking {
                value()
            } onChange: {
                change.yield()
            }
            guard now != expected else { return }
            for await _ in changes { break }
        }
    }

    private func follow(_ model: CentralModel, _ body: @MainActor () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await model.follow() }
            try await body()
            group.cancelAll()
        }
    }

    @Test func `the model follows the state of the central`() async throws {
        let backend = FakeBackend(isPowered: false)
        try await Bench.run(on: backend) { bench in
            let model = CentralModel(bench.central)
            try await follow(model) {
                await wait(until: .poweredOff) { model.state }
                backend.setPowered(true)
                await wait(until: .poweredOn) { model.state }
            }
        }
    }

    @Test func `the model lists each scanned peripheral once`() async throws {
        try await Bench.run { bench in
            let model = CentralModel(bench.central)
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await model.scan() }
                await bench.backend.waitUntilAsked("startDiscovery +")
                #expect(model.isScanning)
                bench.backend.advertise(FakeBackend.strap) { $0.rssi = -70 }
                bench.backend.advertise(FakeBackend.dial)
                bench.backend.advertise(FakeBackend.strap) { $0.rssi = -50 }
                await wait(until: [-50, -60]) { model.discoveries.map(\.rssi) }
                group.cancelAll()
            }
            #expect(!model.isScanning && model.scanError == nil)
        }
    }

    @Test func `a new scan of a model ends its earlier scan`() async throws {
        try await Bench.run { bench in
            let model = CentralModel(bench.central)
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await model.scan() }
                await bench.backend.waitUntilAsked("startDiscovery +")
                bench.backend.advertise(FakeBackend.strap)
                bench.backend.advertise(FakeBackend.dial)
                await wait(until: 2) { model.discoveries.count }
                var filter = ScanFilter()
                filter.addresses = [FakeBackend.dial.address]
                group.addTask { [filter] in await model.scan(filter) }
                await wait(until: 1) { model.discoveries.count }
                bench.backend.advertise(FakeBackend.strap) { $0.rssi = -50 }
                bench.backend.advertise(FakeBackend.dial) { $0.rssi = -40 }
                await wait(until: [-40]) { model.discoveries.map(\.rssi) }
                await group.next()
                #expect(model.isScanning)
                group.cancelAll()
            }
            #expect(!model.isScanning && model.scanError == nil)
        }
    }

    @Test func `a model is no longer reconnecting once a change says so`() async throws {
        try await Bench.run { bench in
            let strap = try bench.strap
            let model = CentralModel(bench.central).model(of: strap)
            bench.backend.advertise(FakeBackend.strap)
            bench.backend.hang("connect")
            strap.keepConnected()
            await bench.backend.waitUntilAsked("connect 1")
            // The central still has its task when the model hears of the failure.
            model.apply(change(of: strap, .disconnected(.authentication), willReconnect: false))
            #expect(!model.isReconnecting)
            model.apply(change(of: strap, .disconnected(.timedOut), willReconnect: true))
            #expect(model.isReconnecting)
        }
    }

    private func change(
        of peripheral: Peripheral,
        _ state: ConnectionState,
        willReconnect: Bool
    ) -> ConnectionStateChange {
        ConnectionStateChange(
            peripheral: peripheral,
            previous: .connecting,
            state: state,
            willReconnect: willReconnect,
            isAutomatic: true,
            isInitial: false
        )
    }

    @Test func `a model keeps no services of a link that ends during their discovery`() async throws {
        let end = Locked<@Sendable () -> Void>({})
        let log = Log(threshold: .debug) { entry in
            // The discovery has succeeded, and the model is about to continue.
            guard entry.fields.contains(where: { $0.value == "discover" }) else { return }
            let action = end.withLock { $0 }
            action()
        }
        let backend = FakeBackend()
        let central = Central(backend: backend, log: log)
        try await central.run { central in
            try await central.waitUntilReady()
            let strap = try await Bench(backend: backend, central: central).connected()
            let link = try #require(central.link(strap.id))
            let model = CentralModel(central).model(of: strap)
            end.withLock { end in
                end = {
                    link.drop(upTo: .max, central)
                    central.ended(link, .remote)
                }
            }
            try await model.discoverServices()
            #expect(model.services.isEmpty)
        }
    }

    @Test func `the list of a scan has a limit, and the longest silent peripherals make room`() async throws {
        try await Bench.run { bench in
            let model = CentralModel(bench.central)
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await model.scan() }
                await bench.backend.waitUntilAsked("startDiscovery +")
                let stranger = PeripheralID(adapter: FakeBackend.adapter, address: BluetoothAddress(value: 1))
                bench.backend.advertise(stranger)
                bench.backend.advertise(FakeBackend.strap)
                await wait(until: 2) { model.discoveries.count }
                for number in 2...1001 as ClosedRange<UInt64> {
                    let address = BluetoothAddress(value: number)
                    bench.backend.advertise(PeripheralID(adapter: FakeBackend.adapter, address: address))
                    if number.isMultiple(of: 100) { bench.backend.advertise(FakeBackend.strap) }
                    await wait(until: true) { model.discoveries.contains { $0.address == address } }
                }
                #expect(model.discoveries.count == 1000)
                #expect(model.discoveries.contains { $0.peripheral.id == FakeBackend.strap })
                #expect(!model.discoveries.contains { $0.peripheral.id == stranger })
                group.cancelAll()
            }
        }
    }

    @Test func `models that nobody uses are released, others stay the only ones of their peripherals`() async throws {
        try await Bench.run { bench in
            func peripheral(_ number: UInt64) -> Peripheral {
                let address = BluetoothAddress(value: number)
                return bench.central.peripheral(PeripheralID(adapter: FakeBackend.adapter, address: address))
            }
            try await bench.connected()
            let model = CentralModel(bench.central)
            let held = model.model(of: peripheral(1))
            let unused = WeakModel(model.model(of: peripheral(2)))
            let connected = WeakModel(model.model(of: try bench.strap))
            let limit = UInt64(PeripheralModels.limit)
            for number in 3...limit { _ = model.model(of: peripheral(number)) }
            let newest = WeakModel(model.model(of: peripheral(limit + 1)))
            #expect(unused.model == nil)
            #expect(connected.model != nil && newest.model != nil)
            #expect(held === model.model(of: peripheral(1)))
        }
    }

    /// A weak reference to a model.
    private struct WeakModel {
        weak var model: PeripheralModel?

        init(_ model: PeripheralModel) {
            self.model = model
        }
    }

    @Test func `the model follows the name, the bond and the signal strength of a peripheral`() async throws {
        try await Bench.run { bench in
            let model = CentralModel(bench.central)
            let strap = model.model(of: try bench.strap)
            try await follow(model) {
                bench.backend.advertise(FakeBackend.strap) { ($0.name, $0.rssi) = ("Strap", -50) }
                await wait(until: "Strap" as String?) { strap.name }
                #expect(strap.rssi == -50)
                bench.backend.know(FakeBackend.strap) { $0.isPaired = true }
                await wait(until: true) { strap.isPaired }
                bench.backend.remove(FakeBackend.strap)
                await wait(until: nil as String?) { strap.name }
                #expect(strap.rssi == nil && !strap.isPaired)
                bench.backend.advertise(FakeBackend.strap)
                await wait(until: -60 as Int?) { strap.rssi }
                bench.backend.say(.unavailable(detail: "gone"))
                await wait(until: nil as Int?) { strap.rssi }
            }
        }
    }

    /// Lets the central handle an advertisement of the dial for each strength.
    private func handle(_ strengths: ClosedRange<Int>, _ central: Central) {
        for strength in strengths {
            var status = PeripheralStatus(id: FakeBackend.dial)
            status.rssi = -strength
            central.handle(.peripheralChanged(status))
        }
    }

    @Test func `a model that is busy misses no last status`() async throws {
        try await Bench.run { bench in
            let model = CentralModel(bench.central)
            let strap = model.model(of: try bench.strap)
            try await follow(model) {
                bench.backend.advertise(FakeBackend.strap)
                await wait(until: -60 as Int?) { strap.rssi }
                // The model waits for the main actor, which these events do not leave.
                handle(1...1, bench.central)
                var status = PeripheralStatus(id: FakeBackend.strap)
                status.name = "Strap"
                bench.central.handle(.peripheralChanged(status))
                handle(2...3000, bench.central)
                await wait(until: "Strap" as String?) { strap.name }
            }
        }
    }

    @Test func `the model follows a peripheral through its connections`() async throws {
        try await Bench.run { bench in
            let model = CentralModel(bench.central)
            let strap = model.model(of: try bench.strap)
            #expect(strap === model.model(of: try bench.strap))
            try await follow(model) {
                try await bench.connected(autoconnect: .whenUnexpected)
                await wait(until: .ready) { strap.connectionState }
                try await strap.discoverServices()
                #expect(strap.services.map(\.uuid) == [0x180D, 0x180F, 0x180F])
                bench.backend.hang("connect")
                bench.backend.drop(FakeBackend.strap, .timedOut)
                await wait(until: .timedOut) { strap.lostBecause }
                #expect(strap.isReconnecting && strap.services.isEmpty)
                #expect(strap.connectionError?.kind == .timedOut)
                bench.backend.release("connect")
                await wait(until: .ready) { strap.connectionState }
                #expect(strap.lostBecause == nil && strap.connectionError == nil)
                try await bench.strap.setNotifyValue(true, for: 0x2A37)
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { await strap.followValues() }
                    group.addTask {
                        while !Task.isCancelled {
                            bench.backend.notify("measurement", [9])
                            await Task.yield()
                        }
                    }
                    await wait(until: [9] as [UInt8]?) { strap.values[CharacteristicID(0x2A37, in: 0x180D)] }
                    group.cancelAll()
                }
            }
        }
    }
}
