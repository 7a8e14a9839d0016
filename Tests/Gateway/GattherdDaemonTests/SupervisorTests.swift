import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import Testing

/// A gateway with one device on fakes.
struct Bench: Sendable {
    let store = FakeStore()
    let central = FakeCentral()
    let announcer = FakeAnnouncer()
    let intake: Intake
    let recorder = EventRecorder(now: { Timestamp(microseconds: 1) })
    let supervisor: Supervisor
    let adapter: BluetoothAddress
    let address: BluetoothAddress

    init(
        _ profiles: [any Profile],
        profileNames: [String]? = nil,
        pairing: DevicePairing = DevicePairing(),
        ownAdapter: BluetoothAddress? = nil,
        usedAdapters: Set<BluetoothAddress>? = nil,
        capacity: Int = 500_000,
        silence: DeviceSilence = DeviceSilence(),
        log: Log = .silent,
        leases: LeaseBoard? = nil,
        describe: (@Sendable ([DescribedCharacteristic], Set<String>) -> SelfDescription?)? = nil
    ) throws {
        intake = Intake(capacity: capacity)
        adapter = try #require(BluetoothAddress("00:00:00:00:00:01"))
        address = try #require(BluetoothAddress("C0:FF:EE:00:00:01"))
        let fast = Backoff(minimum: .milliseconds(1), maximum: .milliseconds(1))
        var settings = Supervisor.Settings(policy: .init(link: .init(backoff: fast)), adapters: usedAdapters)
        (settings.describe, settings.leases) = (describe, leases)
        (settings.silence.lateAdvertisements, settings.silence.freshness) = (.zero, .zero)
        settings.reservedRetry = .milliseconds(1)
        supervisor = Supervisor(
            devices: [
                SupervisedDevice(
                    name: "strap",
                    address: address,
                    profileNames: profileNames,
                    adapter: ownAdapter,
                    pairing: pairing,
                    silence: silence
                )
            ],
            profiles: profiles,
            central: central,
            intake: intake,
            store: store,
            announcer: announcer,
            recorder: recorder,
            settings: settings,
            log: log,
            now: { Timestamp(microseconds: 1) }
        )
        for profile in profiles { addTable(profile) }
    }

    private func addTable(_ profile: any Profile) {
        for descriptor in profile.characteristics {
            let remote = RemoteCharacteristic(
                peripheral: id,
                service: profile.services.first ?? 0xFFF0,
                uuid: descriptor.uuid,
                handle: "\(profile.name)/\(descriptor.uuid)",
                properties: [.read, .notify, .write]
            )
            central.state.withLock { $0.tables[address, default: []].append(remote) }
        }
    }

    var id: PeripheralID { PeripheralID(adapter: adapter, address: address) }

    func powerOn(isConnected: Bool = false, isPaired: Bool = false) {
        central.tell.yield(.available)
        central.tell.yield(
            .adapterChanged(.init(address: adapter, name: "hci0", isPowered: true, isDiscovering: false))
        )
        reportPeripheral(isConnected: isConnected, isResolved: isConnected, isPaired: isPaired)
    }

    func reportPeripheral(isConnected: Bool, isResolved: Bool = false, isPaired: Bool = false, heard: UInt64 = 0) {
        var peripheral = PeripheralStatus(id: id)
        peripheral.isConnected = isConnected
        peripheral.isServicesResolved = isResolved
        peripheral.isPaired = isPaired
        peripheral.heard = heard
        central.tell.yield(.peripheralChanged(peripheral))
    }

    /// Runs the whole pipeline around `body`.
    func run(_ body: @Sendable () async throws -> Void) async throws {
        let ingest = Ingest(
            intake: intake,
            store: store,
            commitInterval: .milliseconds(1),
            recorder: recorder,
            log: .silent
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await supervisor.run() }
            group.addTask { await ingest.run() }
            group.addTask { await recorder.run(store: store, announcer: announcer, log: .silent) }
            try await body()
            supervisor.stop()
            try await group.next()
            intake.finish()
            recorder.finish()
        }
    }
}

@Suite(.timeLimit(.minutes(3))) struct SupervisorTests {
    @Test
    func `links that end with the daemon are reported as ended`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(bench.announcer.statuses.state["strap"]?.last == .disconnected)
        #expect(bench.supervisor.status.link(of: "strap")?.reason == .requested)
    }

    @Test
    func `a device that advertises becomes ready and its values are stored`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.notify([42])
            await bench.store.wait { $0.readings.count == 2 }
        }
        let readings = await bench.store.readings
        #expect(readings.map(\.source) == [.read, .notify])
        #expect(readings.map(\.values) == [[.integer(7)], [.integer(42)]])
        let others: [FakeCentral.Call] = [.startDiscovery, .stopDiscovery, .watch]
        let calls = bench.central.calls.state.filter { !others.contains($0) }
        #expect(calls == [.connect, .subscribe, .read, .unsubscribe, .disconnect])
    }

    @Test func `each advertisement of a device that is connected is reported at once`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        try await bench.run { await bench.central.wait(for: .watch) }
        let watch = bench.central.state.withLock { $0.watch }
        #expect(watch?.promptAddresses == [bench.address])
        #expect(watch?.addresses == [])
    }

    @Test
    func `the status has the time and RSSI of the last sighting`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            #expect(bench.supervisor.status.lastSighting(of: "strap") == nil)
            var peripheral = PeripheralStatus(id: bench.id)
            (peripheral.isConnected, peripheral.rssi, peripheral.heard) = (true, -70, 1)
            bench.central.tell.yield(.peripheralChanged(peripheral))
            bench.central.tell.yield(.adapterRemoved(bench.adapter))
            await bench.announcer.wait(for: "strap", .disconnected)
            let sighting = try #require(bench.supervisor.status.lastSighting(of: "strap"))
            #expect(sighting.rssi == -70)
            #expect(sighting.time == Timestamp(microseconds: 1))
        }
    }

    @Test
    func `a device is described before it is reported ready`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            let published = try #require(bench.announcer.descriptions.state["strap"])
            #expect(published.address == "C0:FF:EE:00:00:01")
            #expect(published.streams.map(\.name) == ["one"])
            #expect(published.streams.flatMap(\.metrics).count == 1)
        }
    }

    @Test
    func `an undecodable payload is a reject and the link stays up`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.notify([])
            bench.central.notify([1])
            await bench.store.wait { $0.readings.count == 2 && $0.rejects.count == 1 }
            #expect(bench.supervisor.status.link(of: "strap")?.state == .ready)
        }
        let reject = try #require(await bench.store.rejects.first)
        #expect(reject.characteristic == "bbbb")
        #expect(reject.payload == [])
        #expect(reject.reason == "truncated: a field at offset 0 needs 1 byte, 0 left")
    }

    @Test
    func `a failed connect is retried and its reason is an event`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        bench.central.state.withLock { $0.failConnects = 2 }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(bench.central.calls.state.filter { $0 == .connect }.count == 3)
        let reasons = await bench.store.events.filter { $0.detail.contains("le-connection-abort-by-local") }
        #expect(reasons.count == 2)
    }

    @Test
    func `a lost link is replaced`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.tell.yield(.disconnected(bench.id))
            await bench.announcer.wait(for: "strap", .ready, times: 2)
        }
        let states = try #require(bench.announcer.statuses.state["strap"])
        #expect(states.contains(.backingOff))
    }

    @Test
    func `an existing link of bluetoothd is adopted without a connect`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        try await bench.run {
            bench.powerOn(isConnected: true)
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(!bench.central.calls.state.contains(.connect))
    }

    @Test
    func `a device disconnected by a person stays disconnected until a person connects it`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            try await bench.supervisor.disconnect("strap")
            await bench.announcer.wait(for: "strap", .held)
            #expect(await bench.store.held == ["strap"])
            bench.powerOn()
            try await bench.supervisor.connect("strap")
            await bench.announcer.wait(for: "strap", .ready, times: 2)
            #expect(await bench.store.held == [])
        }
        await #expect(throws: ControlError.noSuchDevice("nobody")) { try await bench.supervisor.connect("nobody") }
    }

    @Test
    func `a device that is disconnected during an attempt is disconnected after the end of the attempt`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        bench.central.state.withLock { $0.hangingConnects = 1 }
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .connect)
            try await bench.supervisor.disconnect("strap")
            await bench.announcer.wait(for: "strap", .held)
            let calls = bench.central.calls.state.filter { [.connect, .connectCancelled, .disconnect].contains($0) }
            #expect(calls == [.connect, .connectCancelled, .disconnect])
        }
    }

    /// Returns a bench whose device has a characteristic that no profile serves.
    private func benchWithoutFittingProfile() throws -> Bench {
        var profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        profile.isOptIn = true
        return try Bench([profile])
    }

    @Test
    func `a device whose services were not discovered is retried after a short pause`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB, isRequired: true)])
        let table = bench.central.state.withLock { $0.tables.removeValue(forKey: bench.address) }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .backingOff)
            bench.central.state.withLock { $0.tables[bench.address] = table }
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(bench.announcer.statuses.state["strap"]?.contains(.failed) == false)
        #expect(await bench.store.events.contains { $0.detail.contains("has discovered no services") })
    }

    @Test
    func `a device without a fitting profile fails with the reason and its link is released`() async throws {
        let bench = try benchWithoutFittingProfile()
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .failed)
            await bench.central.wait(for: .disconnect)
        }
        #expect(bench.supervisor.status.link(of: "strap")?.reason == .profileMismatch)
    }

    @Test
    func `a link that is being ended when the daemon stops is ended`() async throws {
        let bench = try benchWithoutFittingProfile()
        bench.central.state.withLock { $0.hangingDisconnects = 1 }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .failed)
        }
        #expect(bench.central.calls.state.contains(.disconnect))
        #expect(bench.supervisor.status.link(of: "strap")?.state == .disconnected)
    }

    @Test
    func `a refused optional stream does not fail the link`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        bench.central.state.withLock {
            $0.refusedSubscription = BluetoothError(.att(0xFD), "CCC improperly configured")
        }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            await bench.store.wait { store in store.events.contains { $0.kind == "stream" } }
        }
    }

    @Test
    func `a stream that another program has reserved does not fail the link and is served later`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB, isRequired: true)])
        bench.central.state.withLock { $0.refusedSubscription = BluetoothError(.busy, "Notify acquired") }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            await bench.store.wait { store in store.events.contains { $0.kind == "stream" } }
            bench.central.state.withLock { $0.refusedSubscription = nil }
            await bench.central.wait(for: .subscribe)
            bench.central.notify([42])
            await bench.store.wait { $0.readings.contains { $0.source == .notify } }
            #expect(!bench.central.calls.state.contains(.disconnect))
        }
        #expect(await bench.store.events.count { $0.kind == "stream" } == 1)
    }

    @Test
    func `readings wait while history is not writable, then are stored in bounded commits`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        await bench.store.failNext(.max)
        let octets = (0..<5000).map { UInt8($0 % 251) }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            for octet in octets { bench.central.notify([octet]) }
            await bench.store.failNext(0)
            await bench.store.wait { $0.readings.count == 1 + octets.count }
        }
        let values = await bench.store.readings.dropFirst().map(\.values)
        #expect(values == octets.map { [.integer(Int64($0))] })
        #expect(await bench.store.largestCommit == 2048)
    }

    @Test
    func `values dropped while history is stuck are counted and reported`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)], capacity: 10)
        await bench.store.failNext(1)
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            for octet in 1...100 as ClosedRange<UInt8> { bench.central.notify([octet]) }
            await bench.store.wait { store in store.events.contains { $0.detail.contains("dropped") } }
        }
        #expect(bench.intake.dropped.value > 0)
    }

    @Test
    func `a control is written, and a value out of range is refused`() async throws {
        var profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        profile.controls = [
            ControlDescriptor(name: "level", kind: .integer(0...100), characteristic: BluetoothUUID(0xBBBB))
        ]
        let bench = try Bench([profile])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            let request = ControlRequest(device: "strap", control: "level", value: .integer(33))
            #expect(await bench.supervisor.controls.set(request) == .success(.integer(33)))
            let wrong = ControlRequest(device: "strap", control: "level", value: .integer(101))
            let refusal = ControlError.invalidValue("101", expected: "an integer from 0 to 100")
            #expect(await bench.supervisor.controls.set(wrong) == .failure(refusal))
            let unknown = ControlRequest(device: "strap", control: "lamp", value: .integer(1))
            #expect(await bench.supervisor.controls.set(unknown) == .failure(.noSuchControl("lamp")))
            let long = ControlRequest(
                device: "strap",
                control: String(repeating: "x", count: 60_000),
                value: .text("on")
            )
            guard case .failure(.noSuchControl(let name)) = await bench.supervisor.controls.set(long) else {
                Issue.record("a name that no control can have was not refused")
                return
            }
            #expect(name.utf8.count <= 64)
        }
        #expect(bench.central.calls.state.contains(.write([33])))
    }

    @Test
    func `a characteristic goes to the first profile that wants it`() async throws {
        let bench = try Bench([
            OctetProfile("first", service: 0xAAAA, characteristic: 0xBBBB),
            OctetProfile("second", service: 0xAAAA, characteristic: 0xBBBB),
        ])
        bench.central.state.withLock { state in
            for (address, table) in state.tables { state.tables[address] = Array(table.prefix(1)) }
        }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            await bench.store.wait { $0.readings.count == 1 }
        }
        #expect(await bench.store.readings.map(\.stream) == ["first"])
    }

    @Test
    func `a profile for any service gets the other characteristics, and an opt-in one needs its name`() async throws {
        var loose = OctetProfile("a-loose", service: 0xAAAA, characteristic: 0xBBBB)
        loose.services = []
        loose.characteristics += OctetProfile("left", service: 0xAAAA, characteristic: 0xCCCC).characteristics
        var secret = OctetProfile("secret", service: 0xAAAA, characteristic: 0xBBBB)
        secret.isOptIn = true
        let bench = try Bench([loose, secret, OctetProfile("one", service: 0xFFF0, characteristic: 0xBBBB)])
        bench.central.state.withLock { state in
            var handles: Set<BluetoothUUID> = []
            state.tables[bench.address]?.removeAll { $0.service == 0xAAAA || !handles.insert($0.uuid).inserted }
        }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            let published = try #require(bench.announcer.descriptions.state["strap"])
            #expect(published.streams.map(\.name) == ["one", "left"])
        }
        #expect(await bench.store.devices.map(\.profiles) == [["one", "a-loose"]])
    }

    @Test
    func `an opt-in profile serves a device that names it`() async throws {
        var secret = OctetProfile("secret", service: 0xAAAA, characteristic: 0xBBBB)
        secret.isOptIn = true
        let bench = try Bench([secret], profileNames: ["secret"])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
    }

    @Test
    func `a characteristic without notifications is polled and not subscribed`() async throws {
        var profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        profile.characteristics[0].pollInstead = .milliseconds(1)
        let bench = try Bench([profile])
        let remote = RemoteCharacteristic(
            peripheral: bench.id,
            service: 0xAAAA,
            uuid: 0xBBBB,
            handle: "one",
            properties: [.read]
        )
        bench.central.state.withLock { $0.tables[bench.address] = [remote] }
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .read, times: 3)
            #expect(!bench.central.calls.state.contains(.subscribe))
        }
    }

    @Test
    func `a characteristic with notifications is not polled`() async throws {
        var profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        profile.characteristics[0].pollInstead = .milliseconds(1)
        let bench = try Bench([profile])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.notify([1])
            await bench.store.wait { $0.readings.count == 2 }
        }
        #expect(bench.central.calls.state.count { $0 == .read } == 1)
    }
}
