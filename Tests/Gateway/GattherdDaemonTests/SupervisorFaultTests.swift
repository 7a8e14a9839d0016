import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSimulator
import TestKit
import Testing

@testable import GattherdDaemon

/// The list of faults with the real supervisor, central and bus, and a virtual bluetoothd.
///
/// The duration of recovery is tested with the state machines, which control the time; here recovery only has to
/// happen.
@Suite(.timeLimit(.minutes(2))) struct SupervisorFaultTests {
    /// A fault of the first of three devices; the device must become ready again.
    struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let strike: @Sendable (SimulatedSupervisor) async throws -> Void

        init(_ words: String, _ strike: @escaping @Sendable (SimulatedSupervisor) async throws -> Void) {
            testDescription = words
            self.strike = strike
        }

        /// Returns a fault that ends the first device's link and makes its next calls fail.
        static func failing(_ words: String, _ method: String, _ error: String, times: Int = 2) -> Self {
            Self(words) { world in
                try await world.order(.failNext(target: "strap-1", method: method, error: error, times: times))
                try await world.order(.drop("strap-1"))
            }
        }
    }

    static let faults = [
        Fault("the link is lost") { try await $0.order(.drop("strap-1")) },
        Fault("out of range and back") { world in
            try await world.order(.vanish("strap-1"))
            await world.wait { world.supervisor.status.link(of: "strap-1")?.state != .ready }
            try await world.order(.appear("strap-1"))
        },
        Fault("other services") { try await $0.order(.changeServices("strap-1", without: [])) },
        Fault("ours are missing, then there again") { world in
            try await world.order(.changeServices("strap-1", without: [BluetoothUUID(0x180D)]))
            await world.wait { world.supervisor.status.link(of: "strap-1")?.state == .failed }
            try await world.order(.changeServices("strap-1", without: []))
        },
        .failing("attempts end in abort-by-local", "Connect", "Failed: le-connection-abort-by-local", times: 4),
        .failing("attempts end in InProgress", "Connect", "InProgress: Operation already in progress", times: 4),
        .failing("Connect is not answered", "Connect", "no-reply"),
        .failing("StartNotify is refused", "StartNotify", "Failed: Operation failed with ATT error: 0x0e"),
        .failing("BlueZ forgot the characteristic", "StartNotify", "org.freedesktop.DBus.Error.UnknownObject: gone"),
        Fault("services are not resolved in time") { world in
            try await world.order(.silence("strap-1", .all))
            try await world.order(.drop("strap-1"))
            await world.wait { world.supervisor.status.link(of: "strap-1")?.reason == .timedOut }
            try await world.order(.silence("strap-1", .off))
        },
        Fault("Disconnect fails") { world in
            let error = "Failed: Input/output error"
            try await world.order(.failNext(target: "strap-1", method: "Disconnect", error: error, times: 1))
            try await world.supervisor.disconnect("strap-1")
            await world.wait { world.supervisor.status.link(of: "strap-1")?.state == .held }
            try await world.supervisor.connect("strap-1")
        },
        Fault("the link drops ten times") { world in
            for _ in 1...10 { try await world.recover { try await world.order(.drop("strap-1")) } }
            try await world.order(.drop("strap-1"))
        },
        Fault("the adapter is switched off and on") { world in
            try await world.order(.setPowered(adapter: "hci0", false))
            await world.wait { world.supervisor.status.link(of: "strap-1")?.reason == .adapterPoweredOff }
            try await world.order(.setPowered(adapter: "hci0", true))
        },
        Fault("the adapter is unplugged and plugged") { world in
            try await world.order(.unplug(adapter: "hci0"))
            await world.wait { world.supervisor.status.adapters.isEmpty }
            try await world.order(.plug(adapter: "hci0"))
        },
        Fault("the adapter is unplugged while it connects") { world in
            try await world.order(.failNext(target: "strap-1", method: "Connect", error: "no-reply", times: 1))
            try await world.order(.drop("strap-1"))
            await world.wait { world.supervisor.status.link(of: "strap-1")?.state == .connecting }
            try await world.order(.unplug(adapter: "hci0"))
            try await world.order(.plug(adapter: "hci0"))
        },
        Fault("bluetoothd is restarted") {
            try await $0.order(.restartDaemon(isGraceful: true, downtime: .milliseconds(50)))
        },
        Fault("bluetoothd crashes") {
            try await $0.order(.restartDaemon(isGraceful: false, downtime: .milliseconds(50)))
        },
        Fault("a person disconnects and connects it") { world in
            try await world.supervisor.disconnect("strap-1")
            await world.wait { world.supervisor.status.link(of: "strap-1")?.state == .held }
            try await world.supervisor.connect("strap-1")
        },
    ]

    @Test(arguments: faults)
    func `devices recover from a fault and other devices stay connected or recover`(fault: Fault) async throws {
        var setup = SimulatedSupervisor.Setup()
        setup.peripherals = "battery: 80"
        try await SimulatedSupervisor.run(setup) { world in
            try await world.recover { try await fault.strike(world) }
            #expect(world.supervisor.counters.powerCycles.value == 0)
        }
    }

    @Test
    func `interference by another program is recovered from`() async throws {
        try await SimulatedSupervisor.run { world in
            let id = try world.first
            try await world.withOtherProgram { other in
                try await world.recover { try await other.disconnect(id) }
                try await world.recover { try await other.forget(id) }
                try await world.supervisor.disconnect("strap-1")
                await world.wait { world.supervisor.status.link(of: "strap-1")?.state == .held }
                try await other.connect(id, timeout: .seconds(20))
                #expect(world.supervisor.status.link(of: "strap-1")?.state == .held, "held is held")
                try await world.recover { try await world.supervisor.connect("strap-1") }
            }
        }
    }

    @Test
    func `a controller at its link limit is filled, and a freed slot goes to a waiting device`() async throws {
        var setup = SimulatedSupervisor.Setup()
        setup.adapters = "[{name: hci0, address: '00:00:5E:00:53:00', slots: 3}]"
        setup.devices = 4
        setup.ready = 3
        try await SimulatedSupervisor.run(setup) { world in
            let left = try #require(world.supervisor.status.links.first { !$0.isOnline })
            let other = try #require(world.supervisor.status.links.first { $0.isOnline })
            try await world.supervisor.disconnect(other.device)
            await world.wait { world.supervisor.status.link(of: left.device)?.state == .ready }
            let adapter = try world.first.adapter
            #expect(world.supervisor.status.report(of: adapter)?.links == 3)
        }
    }

    @Test
    func `an adapter that connects no device is recovered step by step`() async throws {
        try await SimulatedSupervisor.run { world in
            for name in world.names {
                let error = "InProgress: Operation already in progress"
                try await world.order(.failNext(target: name, method: "Connect", error: error, times: 25))
            }
            try await world.recover {
                for name in world.names { try await world.order(.drop(name)) }
                await world.store.wait { $0.hasRemedy(.newBusConnection, .wedge) }
            }
            #expect(world.supervisor.counters.discoveryRestarts.value > 0)
        }
    }

    @Test(
        arguments: [true, false]
    )
    func `a scan without results climbs the recovery ladder, adapter on`(mayPowerCycle: Bool) async throws {
        var setup = SimulatedSupervisor.Setup()
        setup.mayPowerCycle = mayPowerCycle
        try await SimulatedSupervisor.run(setup) { world in
            for name in world.names { try await world.order(.vanish(name)) }
            let id = try world.first
            try await world.withOtherProgram { other in
                await world.wait { world.supervisor.status.links.allSatisfy { !$0.isOnline } }
                for name in world.names { try await other.forget(try world.id(name)) }
                let last = mayPowerCycle ? RecoveryLadder.Step.powerCycle : .restartDiscovery
                await world.store.wait { $0.hasRemedy(.newBusConnection, .silence) && $0.hasRemedy(last, .silence) }
                try await world.recover { for name in world.names { try await world.order(.appear(name)) } }
            }
            #expect(world.supervisor.counters.sessionRenewals.value > 0)
            #expect((world.supervisor.counters.powerCycles.value > 0) == mayPowerCycle)
            #expect(world.supervisor.status.adapters.first { $0.address == id.adapter }?.isPowered == true)
        }
    }

    @Test
    func `sixty-four lost links recover although a fifth of the attempts fail`() async throws {
        var setup = SimulatedSupervisor.Setup()
        setup.devices = 64
        try await SimulatedSupervisor.run(setup) { world in
            try await world.recover {
                let error = "Failed: le-connection-abort-by-local"
                for name in world.names.filter({ $0.hasSuffix("5") || $0.hasSuffix("0") }) {
                    try await world.order(.failNext(target: name, method: "Connect", error: error, times: 1))
                }
                for name in world.names { try await world.order(.drop(name)) }
            }
        }
    }

    @Test
    func `sixty-four devices connect after bluetoothd was killed`() async throws {
        var setup = SimulatedSupervisor.Setup()
        setup.devices = 64
        try await SimulatedSupervisor.run(setup) { world in
            for name in world.names { try await world.order(.drop(name)) }
            await world.wait { world.supervisor.status.links.contains { $0.state == .connecting } }
            try await world.recover("strap-64") {
                try await world.order(.restartDaemon(isGraceful: false, downtime: .milliseconds(100)))
            }
        }
    }

    @Test
    func `two adapters share the devices and take over from each other`() async throws {
        var setup = SimulatedSupervisor.Setup()
        setup.devices = 6
        setup.adapters =
            "[{name: hci0, address: '00:00:5E:00:53:00'}, {name: hci1, address: '00:00:5E:00:53:01'}]"
        try await SimulatedSupervisor.run(setup) { world in
            let used = Set(world.supervisor.status.links.compactMap(\.adapter))
            #expect(used == ["00:00:5E:00:53:00", "00:00:5E:00:53:01"])
            let moved = try #require(world.supervisor.status.links.first { $0.adapter == "00:00:5E:00:53:00" })
            try await world.recover(moved.device) { try await world.order(.unplug(adapter: "hci0")) }
            #expect(world.supervisor.status.links.allSatisfy { $0.adapter == "00:00:5E:00:53:01" })
            try await world.order(.plug(adapter: "hci0"))
            try await world.recover(moved.device) { try await world.order(.unplug(adapter: "hci1")) }
            #expect(world.supervisor.status.links.allSatisfy { $0.adapter == "00:00:5E:00:53:00" })
        }
    }

    @Test
    func `a device on hold is disconnected as soon as history is readable`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        await bench.store.hold("strap")
        await bench.store.failToReportHolds(1)
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            await bench.announcer.wait(for: "strap", .held)
        }
    }

    @Test
    func `a device stays on hold when a reload changes it while history cannot be read`() async throws {
        let profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        let bench = try Bench([profile])
        await bench.store.hold("strap")
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .held)
            await bench.store.failToReportHolds(1)
            let other = SupervisedDevice(name: "strap", address: BluetoothAddress(value: 7))
            await bench.supervisor.reload(devices: [other], profiles: [profile])
            repeat {
                await bench.supervisor.roundTrip()
            } while bench.supervisor.devices.first?.address != other.address
            await bench.supervisor.roundTrip()
            #expect(bench.supervisor.status.link(of: "strap")?.state == .held)
        }
    }

    @Test
    func `a failing store does not keep the daemon from stopping`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        try await bench.run {
            await bench.store.failNext(.max)
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(await bench.store.readings.isEmpty)
    }
}

extension SimulatedSupervisor {
    var first: PeripheralID {
        get throws { try id("strap-1") }
    }

    func id(_ name: String) throws -> PeripheralID {
        PeripheralID(adapter: try #require(Self.adapter), address: try #require(addresses[name]))
    }

    /// Runs `body` with another client of the same bluetoothd.
    func withOtherProgram(_ body: (BlueZCentral) async throws -> Void) async throws {
        let other = BlueZCentral(bus: .address(bus.address), log: .silent)
        async let running: Void = other.run()
        for await event in other.events where event == .available { break }
        let result: Result<Void, any Error>
        do { result = .success(try await body(other)) } catch { result = .failure(error) }
        await other.close()
        await running
        try result.get()
    }
}

extension FakeStore {
    /// Returns true if an event has this recovery step.
    func hasRemedy(_ step: RecoveryLadder.Step, _ symptom: RecoveryLadder.Symptom) -> Bool {
        events.contains { event in
            event.kind == "recovery" && event.detail.contains(step.rawValue) && event.detail.contains(symptom.rawValue)
        }
    }
}
