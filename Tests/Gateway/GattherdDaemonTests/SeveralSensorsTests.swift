import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdModel
import GattherdSync
import Testing

/// Devices with several characteristics of one kind, such as two thermometers: each has its own stream.
@Suite(.timeLimit(.minutes(1))) struct SeveralSensorsTests {
    /// A profile that counts the payloads of a connection.
    private struct CountingProfile: Profile {
        let name = "counting"
        let title = "Counting"
        let services: [BluetoothUUID] = [0xAAAA]
        let characteristics = [
            CharacteristicDescriptor(
                uuid: 0xBBBB,
                stream: "count",
                metrics: [MetricDescriptor(name: "count")],
                subscription: .notify,
                isRequired: true
            )
        ]
        let controls: [ControlDescriptor] = []
        let origin = "test"

        func makeDecoder() -> any PayloadDecoder { CountingDecoder() }

        func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] {
            throw .noSuchControl("number \(control)")
        }
    }

    private final class CountingDecoder: PayloadDecoder {
        private var count: Int64 = 0

        func decode(_ payload: Span<UInt8>, characteristic: Int, into samples: inout [Sample]) throws(PayloadError) {
            count += 1
            samples.append(Sample(metric: 0, value: .integer(count)))
        }
    }

    private func setTable(_ bench: Bench, _ entries: [(service: BluetoothUUID, uuid: BluetoothUUID)]) {
        let table = entries.enumerated().map { index, entry in
            RemoteCharacteristic(
                peripheral: bench.id,
                service: entry.service,
                uuid: entry.uuid,
                handle: "\(index)",
                properties: [.read, .notify]
            )
        }
        bench.central.state.withLock { $0.tables = [bench.address: table] }
    }

    private func streams(_ bench: Bench) async throws -> [String] {
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        return bench.announcer.descriptions.state["strap"]?.streams.map(\.name) ?? []
    }

    @Test func `each characteristic with the same UUID has its own stream and decoder`() async throws {
        let bench = try Bench([CountingProfile()])
        setTable(bench, [(0xAAAA, 0xBBBB), (0xAAAA, 0xBBBB), (0xAAAA, 0xBBBB)])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.notify([1])
            bench.central.notify([1])
            await bench.store.wait { $0.readings.count == 6 }
        }
        let names = bench.announcer.descriptions.state["strap"]?.streams.map(\.name)
        #expect(names == ["count", "count_2", "count_3"])
        for name in ["count", "count_2", "count_3"] {
            let counts = await bench.store.readings.filter { $0.stream == name }.flatMap(\.values)
            #expect(counts == [.integer(1), .integer(2)])
        }
    }

    @Test func `a characteristic that another profile needs is left to it`() async throws {
        let bench = try Bench([
            OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB),
            OctetProfile("two", service: 0xAAAA, characteristic: 0xBBBB),
        ])
        setTable(bench, [(0xAAAA, 0xBBBB), (0xAAAA, 0xBBBB), (0xAAAA, 0xBBBB)])
        #expect(try await streams(bench) == ["one", "two", "one_2"])
    }

    @Test func `of an output and an input with one UUID, the input is the stream`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        let properties: [(handle: String, CharacteristicProperties)] = [("output", [.write]), ("input", [.notify])]
        let table = properties.map { handle, properties in
            RemoteCharacteristic(
                peripheral: bench.id,
                service: 0xAAAA,
                uuid: 0xBBBB,
                handle: handle,
                properties: properties
            )
        }
        bench.central.state.withLock { $0.tables = [bench.address: table] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            #expect(bench.central.state.withLock { $0.sinks.values.map { $0.1.handle } } == ["input"])
        }
        #expect(bench.announcer.descriptions.state["strap"]?.streams.map(\.name) == ["one"])
    }

    @Test func `a characteristic that can only be written is used if there is no other`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        let output = RemoteCharacteristic(
            peripheral: bench.id,
            service: 0xAAAA,
            uuid: 0xBBBB,
            handle: "output",
            properties: [.write]
        )
        bench.central.state.withLock { $0.tables = [bench.address: [output]] }
        #expect(try await streams(bench) == ["one"])
    }

    @Test func `a characteristic of another service is left out`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        setTable(bench, [(0xAAAA, 0xBBBB), (0xCCCC, 0xBBBB)])
        #expect(try await streams(bench) == ["one"])
    }
}
