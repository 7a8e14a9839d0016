import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import GattherdDaemon
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSimulator
import GattherdSync
import TestKit
import Testing

/// Heart rate straps on the simulator: a bus, a virtual bluetoothd, the real central and supervisor.
struct SimulatedSupervisor: Sendable {
    let bus: PrivateBus
    let simulator: Simulator
    let central: BlueZCentral
    let supervisor: Supervisor
    let announcer = FakeAnnouncer()
    let store = FakeStore()
    let recorder: EventRecorder
    private let intake = Intake()
    private let log: Log
    let addresses: [String: BluetoothAddress]
    let names: [String]
    private let ready: Int

    static let adapter = BluetoothAddress("00:00:5E:00:53:00")

    /// The settings of a test.
    struct Setup {
        var devices = 3
        /// The number of devices that must be ready before the test starts; `nil` for all.
        var ready: Int?
        var adapters = "[{name: hci0, address: '00:00:5E:00:53:00'}]"
        var kind = "heart-rate"
        /// Additional keys of every peripheral.
        var peripherals = ""
        var profile = OctetProfile("pulse", service: 0x180D, characteristic: 0x2A37, isRequired: true)
        var mayPowerCycle = true
        /// The notifications per second of each device.
        var rate = 0
        var silence = DeviceSilence()
        var rotation: Duration?
        var log = Log.silent
    }

    /// Runs `body` once the devices are ready; everything has ended when this returns.
    static func run(_ setup: Setup = Setup(), _ body: @Sendable (SimulatedSupervisor) async throws -> Void) async throws
    {
        let world = try SimulatedSupervisor(setup)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await world.simulator.run() }
            #expect(await world.simulator.waitUntilReady())
            group.addTask { await world.central.run() }
            try await withThrowingTaskGroup(of: Void.self) { running in
                running.addTask { await world.supervisor.run() }
                running.addTask { await world.ingest.run() }
                running.addTask { await world.recorder.run(store: world.store, announcer: nil, log: .silent) }
                await world.wait { world.supervisor.status.links.count(where: \.isOnline) >= world.ready }
                try await body(world)
                world.supervisor.stop()
                world.intake.finish()
                world.recorder.finish()
                try await running.waitForAll()
            }
            await world.central.close()
            group.cancelAll()
        }
    }

    private init(_ setup: Setup) throws {
        bus = try PrivateBus()
        let address = DBusAddress.address(bus.address)
        simulator = try Simulator(try Scenario(Self.scenario(setup), file: "straps.yaml"), on: address)
        var limits = BlueZCentral.Limits()
        limits.operation = .seconds(3)
        limits.livenessCheck = .seconds(1)
        central = BlueZCentral(bus: address, limits: limits, log: .silent)
        log = setup.log
        names = (1...setup.devices).map { "strap-\($0)" }
        let first = try #require(BluetoothAddress("C0:FF:EE:00:00:01"))
        ready = setup.ready ?? setup.devices
        addresses = Dictionary(
            uniqueKeysWithValues: names.enumerated().map { index, name in
                (name, BluetoothAddress(value: first.value + UInt64(index)))
            }
        )
        recorder = EventRecorder(now: { Timestamp(microseconds: 1) })
        supervisor = Supervisor(
            devices: addresses.map { SupervisedDevice(name: $0.key, address: $0.value, silence: setup.silence) },
            profiles: [setup.profile],
            central: central,
            intake: intake,
            store: store,
            announcer: announcer,
            recorder: recorder,
            settings: Self.settings(setup),
            log: log,
            now: { Timestamp(microseconds: 1) }
        )
    }

    /// Decodes the values and stores the readings.
    private var ingest: Ingest {
        Ingest(intake: intake, store: store, commitInterval: .milliseconds(1), recorder: recorder, log: log)
    }

    /// Returns settings with milliseconds in place of seconds.
    private static func settings(_ setup: Setup) -> Supervisor.Settings {
        let backoff = Backoff(minimum: .milliseconds(10), maximum: .milliseconds(200))
        var policy = SupervisorMachine.Policy()
        policy.link = .init(backoff: backoff, stableAfter: .milliseconds(200), slowRetry: .milliseconds(300))
        policy.recovery.silence = .milliseconds(500)
        policy.recovery.grace = .milliseconds(200)
        policy.recovery.longestPause = .seconds(1)
        policy.recovery.failures = 3
        policy.recovery.mayPowerCycle = setup.mayPowerCycle
        policy.rotation = setup.rotation
        var settings = Supervisor.Settings(
            connectTimeout: .milliseconds(700),
            resolveTimeout: .milliseconds(500),
            policy: policy
        )
        settings.silence.initial = .milliseconds(400)
        settings.silence.bounds = .milliseconds(300) ... .milliseconds(600)
        settings.silence.longestPause = .seconds(1)
        settings.silence.retry = .milliseconds(100)
        return settings
    }

    private static func scenario(_ setup: Setup) -> String {
        """
        timing: {disconnect: 20ms, connect_timeout: 2s, att_timeout: 1s, supervision_timeout: 50ms}
        adapters: \(setup.adapters)
        peripherals:
          - name: strap
            count: \(setup.devices)
            kind: \(setup.kind)
            address: C0:FF:EE:00:00:01
            rate: \(setup.rate)
            connect_latency: 5ms
            resolve_latency: 5ms
            advertise: {interval: 50ms}
            \(setup.peripherals)
        """
    }

    // MARK: - Observation

    var isAllReady: Bool { names.allSatisfy { supervisor.status.link(of: $0)?.state == .ready } }

    /// Returns the number of times that the device became ready.
    func readyCount(_ name: String) -> Int {
        announcer.statuses.state[name, default: []].count { $0 == .ready }
    }

    /// Waits until `condition` holds after a change of a link; the test's time limit bounds it.
    func wait(until condition: () -> Bool) async {
        for await _ in announcer.statuses.watch() where condition() { return }
    }

    /// Runs `strike`, then waits until the device became ready again and all devices are ready.
    func recover(_ name: String = "strap-1", _ strike: () async throws -> Void) async throws {
        let before = readyCount(name)
        try await strike()
        await wait { readyCount(name) > before && isAllReady }
    }

    func order(_ order: SimulatorOrder) async throws {
        try await simulator.perform(order)
    }
}
