import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdLog
import GattherdModel
import GattherdSync
import Testing

/// A profile of raw bytes; an advertisement repeats the last one if its second byte is the same.
private struct BeaconProfile: Profile {
    let name = "beacon"
    let title = "Beacon"
    let services: [BluetoothUUID] = []
    let characteristics: [CharacteristicDescriptor] = []
    var advertisements: [AdvertisementDescriptor]
    let controls: [ControlDescriptor] = []
    let origin = "test"
    private var isGuarded = false

    init(
        isOpen: Bool = false,
        isGuarded: Bool = false,
        renewal: Duration = .seconds(3600),
        after before: [AdvertisementPart] = [],
        source: SourcePattern = .serviceData(0xFCD2),
        silences: [Duration] = []
    ) {
        self.isGuarded = isGuarded
        let metrics = ["value", "count", "other"].map { MetricDescriptor(name: $0) }
        var frame = AdvertisementDescriptor(source: source, stream: "beacon", metrics: metrics)
        (frame.isOpen, frame.renewal, frame.before) = (isOpen, renewal, before)
        if before.isEmpty, source == .serviceData(0xFCD2) { frame.beginning = BytePattern("01") }
        advertisements = [frame]
        // The same frame for each silence, with the first bytes 1, 2, …
        guard !silences.isEmpty else { return }
        advertisements = silences.enumerated().map { number, silence in
            var frame = frame
            (frame.stream, frame.silence) = ("beacon_\(number + 1)", silence)
            frame.beginning = BytePattern("0\(number + 1)")
            return frame
        }
    }

    func makeDecoder() -> any PayloadDecoder { BeaconDecoder(isGuarded: isGuarded) }

    func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] { throw .noSuchControl("") }
}

private final class BeaconDecoder: PayloadDecoder {
    private var last: UInt8?
    private var newest: UInt32?
    private let isGuarded: Bool

    init(isGuarded: Bool) { self.isGuarded = isGuarded }

    var replayMarks: [ReplayCounter] { newest.map { [ReplayCounter(sender: "tag", counter: $0)] } ?? [] }
    func resume(from marks: [String: UInt32]) { newest = marks["tag"] }

    func decode(_ payload: Span<UInt8>, characteristic: Int, into samples: inout [Sample]) throws(PayloadError) {
        var cursor = PayloadCursor(payload)
        let (value, count) = (try cursor.u8(), try cursor.u8())
        guard count != last else { return }
        last = count
        if isGuarded {
            guard count >= newest ?? 0 else { throw .invalid(reason: "a repetition") }
            newest = UInt32(count)
        }
        samples += [value, count].enumerated().map { Sample(metric: $0.offset, value: .integer(Int64($0.element))) }
    }
}

/// Sensors on a fake central and a fake store.
@Suite(.timeLimit(.minutes(1))) struct SensorTests {
    private let store: FakeStore
    private let central = FakeCentral()
    private let announcer = FakeAnnouncer()
    private let intake = Intake()
    private let adapter = BluetoothAddress(value: 1)
    private let address = BluetoothAddress(value: 0xC0FF_EE00_0001)

    init() { self.init(store: FakeStore()) }

    private init(store: FakeStore) { self.store = store }

    private func supervisor(
        _ profile: BeaconProfile = BeaconProfile(),
        silence: Duration? = .seconds(3600),
        adapter: BluetoothAddress? = nil,
        identity: IdentityKey? = nil,
        leases: LeaseBoard? = nil
    ) -> Supervisor {
        var settings = Supervisor.Settings()
        settings.leases = leases
        settings.addressHash = { key, random in random ^ UInt32(key.octets[0]) }
        return Supervisor(
            devices: [
                SupervisedDevice(
                    name: "tag",
                    address: address,
                    profileNames: ["beacon"],
                    adapter: adapter,
                    listening: .init(silence: silence, identity: identity)
                )
            ],
            profiles: [profile],
            central: central,
            intake: intake,
            store: store,
            announcer: announcer,
            recorder: EventRecorder(now: { Timestamp(microseconds: 1) }),
            settings: settings,
            log: .silent,
            now: { Timestamp(microseconds: 1) }
        )
    }

    /// Runs `body` while the supervisor listens; all advertised values are stored when this returns.
    private func run(_ supervisor: Supervisor, _ body: @Sendable () async throws -> Void) async throws {
        let recorder = EventRecorder(now: { Timestamp(microseconds: 1) })
        let ingest = Ingest(intake: intake, store: store, commitInterval: .zero, recorder: recorder, log: .silent)
        async let ingesting: Void = ingest.run()
        async let herding: Void = supervisor.run()
        await central.wait(for: .watch)
        try await body()
        supervisor.stop()
        await herding
        intake.finish()
        await ingesting
    }

    private func advertise(
        _ octets: UInt8...,
        adapter: UInt64 = 1,
        address: UInt64 = 0xC0FF_EE00_0001,
        rssi: Int? = nil
    ) {
        let id = PeripheralID(adapter: BluetoothAddress(value: adapter), address: BluetoothAddress(value: address))
        let frame = HeardAdvertisement.Frame(.serviceData(0xFCD2), octets)
        central.advertise(HeardAdvertisement(peripheral: id, name: "Tag", rssi: rssi, frames: [frame]))
    }

    private func advertise(_ frames: HeardAdvertisement.Frame...) {
        let id = PeripheralID(adapter: adapter, address: address)
        central.advertise(HeardAdvertisement(peripheral: id, name: "Tag", frames: frames))
    }

    private var counts: [SampleValue] { get async { await store.readings.map { $0.values[1] } } }

    @Test func `advertisements of a sensor are stored and the sensor is never connected`() async throws {
        let supervisor = supervisor()
        try await run(supervisor) {
            advertise(1, 5, rssi: -70)
            await announcer.wait(for: "tag", .ready)
            var status = PeripheralStatus(id: PeripheralID(adapter: adapter, address: address))
            status.rssi = -70
            central.tell.yield(
                .adapterChanged(AdapterStatus(address: adapter, name: "hci0", isPowered: true, isDiscovering: false))
            )
            central.tell.yield(.peripheralChanged(status))
            await central.wait(for: .startDiscovery)
        }
        #expect(await store.readings.map(\.source) == [.advert])
        #expect(await store.readings.map(\.values) == [[.integer(1), .integer(5), .integer(-70)]])
        #expect(await store.devices.map(\.profiles) == [["beacon"]])
        #expect(supervisor.status.link(of: "tag")?.rssi == -70)
        #expect(central.calls.state.allSatisfy { $0 == .watch || $0 == .startDiscovery })
    }

    @Test func `a sensor is present while the disk hangs`() async throws {
        let supervisor = supervisor()
        store.recordsDevices.set(false)
        try await run(supervisor) {
            advertise(1, 5)
            await announcer.wait(for: "tag", .ready)
            #expect(await store.devices.isEmpty)
        }
    }

    @Test func `a sensor with an identity key is heard under all its private addresses`() async throws {
        let supervisor = supervisor(identity: IdentityKey(Array(repeating: 7, count: 16)))
        try await run(supervisor) {
            advertise(1, 5, address: 0x4012_3440_1233)
            advertise(1, 6, address: 0x4ABC_DE4A_BCD9)
            advertise(1, 7, address: 0x4ABC_DE4A_BCDA)
            advertise(1, 8)
            await announcer.wait(for: "tag", .ready)
        }
        #expect(await counts == [.integer(5), .integer(6), .integer(8)])
    }

    @Test func `the last sighting is that of the newest private address`() async throws {
        let supervisor = supervisor(identity: IdentityKey(Array(repeating: 7, count: 16)))
        let sensor = try #require(supervisor.devices.first)
        #expect(supervisor.lastSighting(of: sensor) == nil)
        try await run(supervisor) {
            advertise(1, 5, address: 0x4012_3440_1233, rssi: -61)
            #expect(supervisor.lastSighting(of: sensor)?.rssi == -61)
            advertise(1, 6, address: 0x4ABC_DE4A_BCD9, rssi: -80)
            advertise(1, 7, address: 0x4ABC_DE4A_BCDA, rssi: -50)
        }
        #expect(supervisor.lastSighting(of: sensor)?.rssi == -80)
    }

    @Test func `leases have the strength of a private address under the address of its sensor`() async throws {
        let board = LeaseBoard()
        let supervisor = supervisor(identity: IdentityKey(Array(repeating: 7, count: 16)), leases: board)
        try await run(supervisor) { advertise(1, 5, address: 0x4012_3440_1233, rssi: -61) }
        #expect(board.drainSightings().map(\.address) == [address.description])
    }

    @Test func `a reading is joined from the newest of its parts once all were heard`() async throws {
        let part = AdvertisementPart(source: .manufacturer(0x0969), length: 1)
        try await run(supervisor(BeaconProfile(after: [part]))) {
            advertise(.init(.serviceData(0xFCD2), [5]))
            advertise(.init(.manufacturer(0x0969), [1, 1]), .init(.manufacturer(0x0968), [2]))
            advertise(.init(.manufacturer(0x0969), [3]))
            advertise(.init(.manufacturer(0x0969), [4]), .init(.serviceData(0xFCD2), [6]))
            advertise(.init(.serviceData(0xFCD2), [7]))
        }
        let values = await store.readings.map(\.values)
        #expect(values == [[3, 5], [4, 6], [4, 7]].map { $0.map { .integer($0) } })
    }

    @Test func `the identifier is a part of the data of any company`() async throws {
        let supervisor = supervisor(BeaconProfile(source: .anyManufacturer))
        try await run(supervisor) {
            advertise(.init(.manufacturer(0x0201), []))
            advertise(.init(.manufacturer(0x0301), [9]))
        }
        let values = await store.readings.map(\.values)
        #expect(values == [[1, 2], [1, 3]].map { $0.map { .integer($0) } })
    }

    @Test func `repeated bytes are one reading across adapters until they are sent again`() async throws {
        try await run(supervisor()) {
            for adapter in [1, 2, 1] as [UInt64] { advertise(1, 5, adapter: adapter) }
            advertise(1, 6)
            advertise(1, 5)
        }
        #expect(await counts == [.integer(5), .integer(6), .integer(5)])
    }

    @Test func `different bytes with the same sequence number are not a new reading`() async throws {
        try await run(supervisor(BeaconProfile(renewal: .zero))) {
            advertise(1, 5)
            advertise(1, 5)
            advertise(1, 5, 9)
            advertise(1, 6)
        }
        #expect(await counts == [.integer(5), .integer(6)])
        #expect(await store.rejects.isEmpty)
    }

    @Test func `undecodable frames are rejects, and unknown frames are ignored`()
        async throws
    {
        try await run(supervisor()) {
            advertise(1)
            advertise(2, 5)
            advertise(1, 5, address: 0xC0FF_EE00_0002)
        }
        #expect(await store.rejects.map(\.payload) == [[1]])
        #expect(await store.rejects.map(\.characteristic) == ["fcd2"])
        #expect(await store.readings.isEmpty)
    }

    @Test func `replay counters survive a restart`()
        async throws
    {
        let store = FakeStore(marks: ["tag": 5, "other": 9])
        let suite = SensorTests(store: store)
        try await suite.run(suite.supervisor(BeaconProfile(isGuarded: true))) {
            suite.advertise(1, 4)
            suite.advertise(1, 6)
            suite.advertise(1, 7)
        }
        #expect(await suite.counts == [.integer(6), .integer(7)])
        #expect(await store.rejects.map(\.reason) == ["a repetition"])
        #expect(await store.marks == ["tag": 7, "other": 9])
    }

    @Test func `a decoder that starts without history loads its counters later`() async throws {
        let store = FakeStore(marks: ["tag": 5])
        let suite = SensorTests(store: store)
        await store.failToRecall(1)
        try await suite.run(suite.supervisor(BeaconProfile(isGuarded: true))) {
            suite.advertise(1, 3)
            await store.wait { !$0.readings.isEmpty }
            suite.advertise(1, 4)
        }
        #expect(await suite.counts == [.integer(3)])
        #expect(await store.rejects.map(\.reason) == ["a repetition"])
    }

    @Test func `a silent sensor is away until it advertises again`() async throws {
        try await run(supervisor(silence: .milliseconds(20))) {
            advertise(1, 5)
            await announcer.wait(for: "tag", .waiting, times: 2)
            advertise(1, 6)
            await announcer.wait(for: "tag", .waiting, times: 3)
        }
        #expect(announcer.statuses.state["tag"] == [.waiting, .ready, .waiting, .ready, .waiting])
    }

    @Test func `the silence of frames that a sensor does not send does not count`() async throws {
        let profile = BeaconProfile(silences: [.milliseconds(20), .seconds(3600)])
        try await run(supervisor(profile, silence: nil)) {
            advertise(1, 5)
            await announcer.wait(for: "tag", .waiting, times: 2)
        }
        #expect(announcer.statuses.state["tag"] == [.waiting, .ready, .waiting])
    }

    @Test func `a sensor with its own adapter is not heard on another one`() async throws {
        try await run(supervisor(adapter: BluetoothAddress(value: 2))) {
            advertise(1, 5, adapter: 1)
            advertise(1, 6, adapter: 2)
        }
        #expect(await counts == [.integer(6)])
    }

    @Test func `only the metrics heard from an open format are described`() async throws {
        try await run(supervisor(BeaconProfile(isOpen: true))) {
            advertise(1, 5)
            for await all in announcer.descriptions.watch() where all["tag"] != nil { break }
        }
        #expect(announcer.descriptions.state["tag"]?.streams.map { $0.metrics.map(\.name) } == [["value", "count"]])
    }

    @Test func `a reload stops removed sensors, starts new ones and keeps the others`()
        async throws
    {
        let (supervisor, other) = (supervisor(), BluetoothAddress(value: 0xC0FF_EE00_0002))
        try await run(supervisor) {
            advertise(1, 5)
            await announcer.wait(for: "tag", .ready)
            let second = SupervisedDevice(name: "second", address: other, profileNames: ["beacon"], listening: .init())
            await supervisor.reload(devices: supervisor.devices + [second], profiles: [BeaconProfile()])
            await announcer.wait(for: "second", .waiting)
            await central.wait(for: .watch, times: 2)
            advertise(1, 5)
            advertise(1, 7, address: other.value)
            await announcer.wait(for: "second", .ready)
            #expect(supervisor.devices.map(\.name) == ["second", "tag"])
            await supervisor.reload(devices: [second], profiles: [BeaconProfile()])
            await announcer.wait(forRemovalOf: "tag")
            advertise(1, 8)
        }
        #expect(await counts == [.integer(5), .integer(7)])
        #expect(announcer.statuses.state["tag"] == [.waiting, .ready])
        #expect(supervisor.status.link(of: "tag") == nil)
    }

    @Test(arguments: [(0xC0FF_EE00_0002, ["tag"]), (0xC0FF_EE00_0001, [])] as [(UInt64, [String])])
    func `the state of a sensor is removed when one with another address replaces it`(
        address: UInt64,
        removed: [String]
    ) async throws {
        let supervisor = supervisor()
        try await run(supervisor) {
            await announcer.wait(for: "tag", .waiting)
            let successor = SupervisedDevice(
                name: "tag",
                address: BluetoothAddress(value: address),
                profileNames: ["beacon"],
                listening: .init(silence: .seconds(60))
            )
            await supervisor.reload(devices: [successor], profiles: [BeaconProfile()])
            await announcer.wait(for: "tag", .waiting, times: 2)
            #expect(announcer.removed.state == removed)
        }
    }

    @Test func `connecting a sensor is refused with the reason`() async throws {
        let supervisor = supervisor()
        let error = await #expect(throws: ControlError.self) { try await supervisor.connect("tag") }
        #expect("\(try #require(error))".contains("only advertises"))
    }

    @Test func `setting a control of a sensor is refused with the reason`() async throws {
        let supervisor = supervisor()
        let value = await supervisor.controls.set(ControlRequest(device: "tag", control: "level", value: .integer(1)))
        #expect(value == .failure(.onlyAdvertises("tag")))
        let other = await supervisor.controls.set(
            ControlRequest(device: "nobody", control: "level", value: .integer(1))
        )
        #expect(other == .failure(.noSuchDevice("nobody")))
    }
}
