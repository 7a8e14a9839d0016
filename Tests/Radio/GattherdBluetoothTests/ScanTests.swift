import GattherdSync
import TestKit
import Testing

@testable import GattherdBluetooth

@Suite(.timeLimit(.minutes(1))) struct ScanTests {
    private static let strap = FakeBackend.strap
    private static let dial = FakeBackend.dial

    /// Collects the first `count` advertisements of a scan.
    private func hear(_ scan: Scan, _ count: Int) async throws -> [Advertisement] {
        var heard: [Advertisement] = []
        for try await advertisement in scan.prefix(count) { heard.append(advertisement) }
        return heard
    }

    @Test func `an advertisement has all advertised data`() async throws {
        try await Bench.run { bench in
            async let heard = hear(bench.central.scan(), 1)
            await bench.backend.waitUntilAsked("startDiscovery")
            bench.backend.advertise(Self.strap) { status in
                status.name = "Strap"
                status.rssi = -71
                status.services = [0x180D]
                status.advertisement.manufacturerData = [0x004C: [2]]
                status.advertisement.txPower = 4
            }
            let first = try await heard.first
            let advertisement = try #require(first)
            #expect(advertisement.name == "Strap")
            #expect(advertisement.rssi == -71)
            #expect(advertisement.services == [0x180D])
            #expect(advertisement.data.manufacturerData == [0x004C: [2]])
            #expect(advertisement.data.txPower == 4)
            #expect(advertisement.address == Self.strap.address)
            #expect(advertisement.peripheral.name == "Strap")
            #expect(advertisement.peripheral.advertisementData == advertisement.data)
            await bench.backend.waitUntilAsked("stopDiscovery")
        }
    }

    @Test func `the first advertisement ends the scan`() async throws {
        try await Bench.run { bench in
            let start = ContinuousClock.now
            async let heard = bench.central.scan(name: "Strap").first()
            await bench.backend.waitUntilAsked("startDiscovery")
            bench.backend.advertise(Self.dial)
            bench.backend.advertise(Self.strap) { $0.name = "Strap" }
            let first = try await heard
            #expect(first.peripheral.id == Self.strap)
            #expect(first.time > start && first.time == first.peripheral.lastSeen)
            await bench.backend.waitUntilAsked("stopDiscovery")
            let late = await outcome { try await bench.central.scan(name: "Nobody", timeout: .milliseconds(1)).first() }
            #expect(late.error?.kind == .timedOut)
        }
    }

    @Test func `a removed peripheral has no last sighting`() async throws {
        try await Bench.run { bench in
            let dial = bench.central.peripheral(Self.dial)
            bench.backend.know(Self.dial)
            bench.backend.advertise(Self.dial)
            try await eventually { dial.lastSeen != nil }
            bench.backend.remove(Self.dial)
            try await eventually { dial.lastSeen == nil }
        }
    }

    @Test func `a new name is published once`() async throws {
        try await Bench.run { bench in
            let names = try bench.strap.nameChanges()
            bench.backend.advertise(Self.strap) { $0.name = "Strap" }
            bench.backend.advertise(Self.strap)
            bench.backend.advertise(Self.strap) { $0.name = "My strap" }
            bench.backend.advertise(Self.strap) { $0.name = nil }
            var told: [String?] = []
            for await name in names.prefix(3) { told.append(name) }
            #expect(told == ["Strap", "My strap", nil])
        }
    }

    private static func filter(_ set: (inout ScanFilter) -> Void) -> ScanFilter {
        var filter = ScanFilter()
        set(&filter)
        return filter
    }

    @Test(arguments: [
        filter { $0.services = [0x180D] }, filter { $0.services = [0x1809] }, filter { $0.name = "Strap 1" },
        filter { $0.namePrefix = "Strap" }, filter { $0.minimumRSSI = -60 },
        filter { $0.addresses = [strap.address] },
    ])
    func `a filter admits only matching peripherals`(filter: ScanFilter) async throws {
        try await Bench.run { bench in
            async let heard = hear(bench.central.scan(filter), 1)
            try await eventually { bench.backend.asked.state.contains { $0.hasPrefix("startDiscovery") } }
            bench.backend.advertise(Self.dial) { status in
                status.name = "Dial"
                status.services = [0x180F]
                status.rssi = -61
            }
            bench.backend.advertise(Self.strap) { status in
                status.name = "Strap 1"
                status.services = [0x180D]
                status.advertisement.serviceData = [0x1809: []]
                status.rssi = -60
            }
            let addresses = try await heard.map(\.address)
            #expect(addresses == [Self.strap.address])
        }
    }

    @Test(arguments: [filter { $0.namePrefix = "Strap" }, filter { $0.services = [0x180D] }])
    func `a filter finds a peripheral whose name or services come alone`(filter: ScanFilter) async throws {
        try await Bench.run { bench in
            async let heard = hear(bench.central.scan(filter), 1)
            try await eventually { bench.backend.asked.state.contains { $0.hasPrefix("startDiscovery") } }
            bench.backend.advertise(Self.strap)
            bench.backend.know(Self.strap) { status in
                status.name = "Strap 1"
                status.services = [0x180D]
            }
            let addresses = try await heard.map(\.address)
            #expect(addresses == [Self.strap.address])
        }
    }

    @Test func `a name that comes alone is no further advertisement`() async throws {
        try await Bench.run { bench in
            async let heard = hear(bench.central.scan(allowDuplicates: true), 2)
            await bench.backend.waitUntilAsked("startDiscovery +")
            bench.backend.advertise(Self.strap)
            bench.backend.know(Self.strap) { $0.name = "Strap" }
            bench.backend.advertise(Self.strap) { $0.rssi = -50 }
            let strengths = try await heard.map(\.rssi)
            #expect(strengths == [-60, -50])
        }
    }

    @Test func `a scan reports a peripheral once, or each advertisement`() async throws {
        try await Bench.run { bench in
            async let once = hear(bench.central.scan(), 2)
            async let always = hear(bench.central.scan(allowDuplicates: true), 4)
            try await eventually { bench.central.registry.withLock { $0.scanners.sorted.count } == 2 }
            for _ in 0..<3 { bench.backend.advertise(Self.strap) }
            bench.backend.advertise(Self.dial)
            let (addresses, count) = try await (once.map(\.address), always.count)
            #expect(addresses == [Self.strap.address, Self.dial.address])
            #expect(count == 4)
        }
    }

    @Test func `advertisements that a newer status replaced count as dropped`() async throws {
        try await Bench.run { bench in
            var each = bench.central.scan(allowDuplicates: true).makeAsyncIterator()
            let once = bench.central.scan().makeAsyncIterator()
            bench.backend.advertise(Self.strap)
            _ = try await each.next()
            #expect(each.droppedCount == 0)
            bench.backend.advertise(Self.strap) { $0.heard += 2 }
            _ = try await each.next()
            #expect(each.droppedCount == 2 && once.droppedCount == 0)
        }
    }

    @Test func `a removed peripheral is reported again`() async throws {
        try await Bench.run { bench in
            async let heard = hear(bench.central.scan(), 2)
            await bench.backend.waitUntilAsked("startDiscovery")
            bench.backend.advertise(Self.strap)
            bench.backend.remove(Self.strap)
            bench.backend.advertise(Self.strap)
            let addresses = try await heard.map(\.address)
            #expect(addresses == [Self.strap.address, Self.strap.address])
        }
    }

    @Test func `consumers share one scan with a filter that covers all`() async throws {
        try await Bench.run { bench in
            await withTaskGroup(of: Void.self) { all in
                await withTaskGroup(of: Void.self) { narrow in
                    // Without the services: BlueZ would hide peripherals that only have service data.
                    narrow.addTask { _ = try? await hear(bench.central.scan(services: [0x180D]), 9) }
                    await bench.backend.waitUntilAsked("startDiscovery")
                    all.addTask { _ = try? await hear(bench.central.scan(allowDuplicates: true), 9) }
                    await bench.backend.waitUntilAsked("startDiscovery +")
                    narrow.cancelAll()
                }
                #expect(!bench.backend.asked.state.contains("stopDiscovery"))
                all.cancelAll()
            }
            await bench.backend.waitUntilAsked("stopDiscovery")
        }
    }

    @Test func `a late subscriber receives the current advertisements`() async throws {
        try await Bench.run { bench in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = try await hear(bench.central.scan(), 9) }
                await bench.backend.waitUntilAsked("startDiscovery")
                bench.backend.advertise(Self.strap)
                try await eventually { try bench.strap.rssi != nil }
                let addresses = try await hear(bench.central.scan(), 1).map(\.address)
                #expect(addresses == [Self.strap.address])
                group.cancelAll()
            }
        }
    }

    @Test func `a scan that begins before the adapter is known receives the current advertisements`() async throws {
        let backend = FakeBackend(isPowered: nil)
        try await Bench.run(on: backend) { bench in
            async let heard = hear(bench.central.scan(), 1)
            try await eventually { bench.central.registry.withLock { $0.scanners.sorted.count } == 1 }
            backend.say(.available)
            backend.advertise(Self.strap)
            backend.setPowered(true)
            let addresses = try await heard.map(\.address)
            #expect(addresses == [Self.strap.address])
        }
    }

    @Test func `a scan ends with a timeout`() async throws {
        try await Bench.run { bench in
            do {
                _ = try await hear(bench.central.scan(timeout: .milliseconds(20)), 1)
                Issue.record("heard something")
            } catch let error as BluetoothError {
                #expect(error.kind == .timedOut)
                #expect(error.operation == .scan)
            }
            await bench.backend.waitUntilAsked("stopDiscovery")
        }
    }

    @Test func `connecting works during a scan`() async throws {
        try await Bench.run { bench in
            async let connected: Void = {
                for try await advertisement in bench.central.scan().prefix(1) {
                    try await advertisement.peripheral.connect()
                    #expect(!bench.backend.asked.state.contains("stopDiscovery"))
                }
            }()
            await bench.backend.waitUntilAsked("startDiscovery")
            bench.backend.advertise(Self.strap)
            try await connected
            #expect(bench.backend.asked.state.contains("connect 1"))
        }
    }

    @Test func `a scan continues after the adapter or bluetoothd returns`() async throws {
        try await Bench.run { bench in
            async let heard = hear(bench.central.scan(), 1)
            await bench.backend.waitUntilAsked("startDiscovery")
            bench.backend.setPowered(false)
            bench.backend.setPowered(true)
            await bench.backend.waitUntilAsked("startDiscovery", times: 2)
            bench.backend.say(.unavailable(detail: "gone"))
            bench.backend.say(.available)
            bench.backend.setPowered(true)
            await bench.backend.waitUntilAsked("startDiscovery", times: 3)
            bench.backend.advertise(Self.strap)
            let count = try await heard.count
            #expect(count == 1)
        }
    }

    @Test func `a peripheral is reported again after a restart of bluetoothd`() async throws {
        try await Bench.run { bench in
            async let heard = hear(bench.central.scan(), 2)
            await bench.backend.waitUntilAsked("startDiscovery")
            bench.backend.advertise(Self.strap)
            bench.backend.say(.unavailable(detail: "gone"))
            bench.backend.say(.available)
            bench.backend.setPowered(true)
            bench.backend.advertise(Self.strap)
            let addresses = try await heard.map(\.address)
            #expect(addresses == [Self.strap.address, Self.strap.address])
        }
    }

    @Test func `scans that begin while others end run`() async throws {
        try await Bench.run { bench in
            for _ in 0..<20_000 {
                async let passing: Void = { _ = bench.central.scan().makeAsyncIterator() }()
                let scan = bench.central.scan().makeAsyncIterator()
                await passing
                withExtendedLifetime(scan) { #expect(bench.central.discovery.state != nil) }
            }
        }
    }

    @Test func `a busy adapter is tried again, a refusal is an error`() async throws {
        try await Bench.run { bench in
            bench.backend.fail("startDiscovery", BluetoothError(.busy, "wait"))
            async let heard = hear(bench.central.scan(), 1)
            await bench.backend.waitUntilAsked("startDiscovery", times: 2)
            bench.backend.advertise(Self.strap)
            let count = try await heard.count
            #expect(count == 1)
            await bench.backend.waitUntilAsked("stopDiscovery")
            bench.backend.fail("startDiscovery", BluetoothError(.accessDenied, "no"))
            do {
                _ = try await hear(bench.central.scan(services: [0x1800]), 1)
                Issue.record("heard something")
            } catch let error as BluetoothError {
                #expect(error.kind == .accessDenied)
                #expect(error.operation == .scan)
            }
        }
    }

    @Test func `a scan that is restarted after a failure runs`() async throws {
        try await Bench.run { bench in
            for round in 1...300 {
                bench.backend.fail("startDiscovery", BluetoothError(.accessDenied, "no"))
                let first = await outcome { try await bench.central.scan().first() }
                #expect(first.error?.kind == .accessDenied)
                do {
                    let again = bench.central.scan().makeAsyncIterator()
                    await bench.backend.waitUntilAsked("startDiscovery", times: 2 * round)
                    withExtendedLifetime(again) {}
                }
                // One for the start that failed, which may go on all the same, and one for the end.
                await bench.backend.waitUntilAsked("stopDiscovery", times: 2 * round)
            }
        }
    }

    @Test func `without an adapter that is on there is no scan`() async throws {
        try await Bench.run(on: FakeBackend(isPowered: false)) { bench in
            for await state in bench.central.states where state == .poweredOff { break }
            do {
                _ = try await hear(bench.central.scan(), 1)
                Issue.record("heard something")
            } catch let error as BluetoothError {
                #expect(error.kind == .adapterUnavailable)
                #expect(error.detail.contains("bluetoothctl power on"))
            }
        }
    }
}
