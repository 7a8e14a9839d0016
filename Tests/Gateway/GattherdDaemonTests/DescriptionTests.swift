import GattherdBluetooth
import GattherdGATT
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdDaemon

/// Devices served by their own descriptors where no profile fits.
@Suite(.timeLimit(.minutes(1))) struct DescriptionTests {
    private func bench(_ profiles: [OctetProfile], names: [String]? = nil) throws -> Bench {
        try Bench(profiles, profileNames: names) { described, taken in
            guard !described.isEmpty else { return nil }
            var profile = OctetProfile("own", service: 0xFFF0, characteristic: 0xFFF1)
            profile.services = []
            profile.characteristics = described.map { one in
                var descriptor = CharacteristicDescriptor(
                    uuid: one.uuid,
                    stream: String(decoding: one.description ?? [], as: UTF8.self)
                        + "\(one.formats.count)\(taken.count)",
                    metrics: [MetricDescriptor(name: "octet")],
                    subscription: one.isNotifying ? .notify : .none,
                    isReadAtConnect: one.isReadable
                )
                descriptor.handle = one.handle
                return descriptor
            }
            return SelfDescription(profile: profile, remarks: ["odd"])
        }
    }

    private func add(
        _ uuid: BluetoothUUID,
        to bench: Bench,
        _ descriptors: [(BluetoothUUID, [UInt8]?)],
        handle: String? = nil
    ) {
        let handle = handle ?? "\(uuid)"
        let remote = RemoteCharacteristic(
            peripheral: bench.id,
            service: 0xFFF0,
            uuid: uuid,
            handle: handle,
            properties: [.read, .notify]
        )
        bench.central.state.withLock { state in
            state.tables[bench.address, default: []].append(remote)
            for (index, descriptor) in descriptors.enumerated() {
                let place = "\(handle)/\(index)"
                state.descriptors.append(
                    (RemoteDescriptor(characteristic: remote, uuid: descriptor.0, handle: place), descriptor.1)
                )
            }
        }
    }

    @Test func `a device without a profile is served by its descriptors`() async throws {
        let bench = try bench([])
        add(0xFFF1, to: bench, [(0x2901, Array("soil".utf8)), (0x2904, [4])])
        add(0xFFF2, to: bench, [(0x2901, Array("none".utf8))])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            #expect(bench.announcer.descriptions.state["strap"]?.streams.map(\.name) == ["soil10"])
            bench.central.notify([42])
            await bench.store.wait { $0.readings.count == 2 }
        }
        #expect(await bench.store.readings.map(\.source) == [.read, .notify])
        #expect(await bench.store.events.contains { $0.kind == "descriptor" && $0.detail.contains("odd") })
    }

    @Test func `a device cannot describe ever new streams`() {
        let catalogue = StreamCatalogue()
        func admit(_ numbers: Range<Int>, _ metric: String = "x", of device: String = "strap") -> Bool {
            let metrics = [MetricDescriptor(name: metric)]
            let streams = numbers.map { CharacteristicDescriptor(uuid: 0xFFF1, stream: "s\($0)", metrics: metrics) }
            return catalogue.admit(streams, describedBy: device)
        }
        #expect(admit(0..<200) && admit(0..<200))
        #expect(!admit(200..<257))
        #expect(admit(200..<256))
        #expect(!admit(0..<1, "y"))
        #expect(admit(0..<256))
        #expect(admit(300..<400, of: "other"))
        catalogue.remove(device: "strap")
        #expect(admit(300..<400))
    }

    @Test func `a device with too many different streams is not served by its descriptors`() async throws {
        let bench = try Bench([]) { described, _ in
            var profile = OctetProfile("own", service: 0xFFF0, characteristic: 0xFFF1)
            profile.characteristics = (0...256).map { number in
                CharacteristicDescriptor(uuid: 0xFFF1, stream: "s\(number)", metrics: [MetricDescriptor(name: "octet")])
            }
            return described.isEmpty ? nil : SelfDescription(profile: profile, remarks: [])
        }
        add(0xFFF1, to: bench, [(0x2904, [4])])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .failed)
        }
        let words = "it has described more than 256 different streams"
        #expect(await bench.store.events.contains { $0.kind == "descriptor" && $0.detail.contains(words) })
    }

    @Test func `of two characteristics with one UUID, the described one is served`() async throws {
        let bench = try bench([])
        add(0xFFF1, to: bench, [(0x2901, Array("output".utf8))], handle: "output")
        add(0xFFF1, to: bench, [(0x2901, Array("input".utf8)), (0x2904, [4])], handle: "input")
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            #expect(bench.central.state.withLock { $0.sinks.values.map { $0.1.handle } } == ["input"])
        }
    }

    @Test func `descriptors are not read for characteristics with a profile`() async throws {
        let bench = try bench([OctetProfile("one", service: 0xFFF0, characteristic: 0xFFF1)])
        bench.central.state.withLock { $0.tables = [:] }
        add(0xFFF1, to: bench, [(0x2904, [4])])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(!bench.central.calls.state.contains(.readDescriptor(0x2904)))
    }

    @Test func `a device with chosen profiles is served by these alone`() async throws {
        let bench = try bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)], names: ["one"])
        add(0xFFF1, to: bench, [(0x2904, [4])])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            #expect(bench.announcer.descriptions.state["strap"]?.streams.map(\.name) == ["one"])
        }
        #expect(!bench.central.calls.state.contains(.readDescriptor(0x2904)))
    }

    @Test func `a characteristic with an unreadable descriptor is left out`() async throws {
        let bench = try bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        add(0xFFF1, to: bench, [(0x2904, nil)])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            #expect(bench.announcer.descriptions.state["strap"]?.streams.map(\.name) == ["one"])
        }
    }

    @Test func `streams of two profiles with one name get different names`() async throws {
        var second = OctetProfile("two", service: 0xAAAA, characteristic: 0xCCCC)
        second.characteristics[0].stream = "one"
        let bench = try bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB), second])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            #expect(bench.announcer.descriptions.state["strap"]?.streams.map(\.name) == ["one", "one_2"])
        }
    }

    @Test func `a fitting profile without anything to serve is named in the reason`() async throws {
        let bench = try bench([OctetProfile("two", service: 0xFFF0, characteristic: 0xCCCC)])
        bench.central.state.withLock { $0.tables[bench.address] = [] }
        add(0xFFF1, to: bench, [])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .failed)
        }
        let words = "its profiles (two) fit none of its characteristics"
        #expect(await bench.store.events.contains { $0.detail.contains(words) })
    }

    @Test func `a device without a profile and descriptors fails with that reason`() async throws {
        let bench = try bench([])
        add(0xFFF1, to: bench, [])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .failed)
        }
        #expect(await bench.store.events.contains { $0.detail.contains("no profile fits its services (fff0)") })
    }

    @Test func `the fault of a device with thousands of services names a few of them`() throws {
        let peripheral = PeripheralID(adapter: BluetoothAddress(value: 1), address: BluetoothAddress(value: 2))
        let table = (0..<4096).map { number in
            RemoteCharacteristic(
                peripheral: peripheral,
                service: BluetoothUUID(high: UInt64(number), low: 1),
                uuid: 0xFFF1,
                handle: "\(number)",
                properties: .notify
            )
        }
        let plan = try ProfileAssignment(candidates: [], areChosen: false, table: table)
        let fault = #expect(throws: LinkFault.self) { try plan.checkThatItServes() }
        let detail = try #require(fault?.detail)
        #expect(detail.utf8.count < 1024)
        #expect(detail.contains(" and 4080 more"))
    }
}
