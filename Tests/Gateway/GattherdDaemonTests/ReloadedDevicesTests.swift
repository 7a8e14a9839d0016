import GattherdGATT
import GattherdModel
import GattherdSimulator
import GattherdSync
import Testing

@testable import GattherdDaemon

@Suite(.timeLimit(.minutes(3))) struct ReloadTests {
    private let profile = SimulatedSupervisor.Setup().profile

    @Test func `a reload without changes keeps all links`() async throws {
        try await SimulatedSupervisor.run { world in
            await world.supervisor.reload(devices: world.configured, profiles: [profile])
            await world.supervisor.reload(devices: Array(world.configured.dropLast()), profiles: [profile])
            await world.announcer.wait(forRemovalOf: "strap-3")
            for name in ["strap-1", "strap-2"] { #expect(world.states(name).count { $0 == .discovering } == 1) }
        }
    }

    @Test func `a device removed from the configuration loses its link and state`() async throws {
        try await SimulatedSupervisor.run { world in
            await world.supervisor.reload(devices: Array(world.configured.dropFirst()), profiles: [profile])
            await world.announcer.wait(forRemovalOf: "strap-1")
            #expect(world.states("strap-1").suffix(2) == [.disconnecting, .held])
            #expect(world.supervisor.status.link(of: "strap-1") == nil)
            #expect(world.supervisor.devices.map(\.name) == ["strap-2", "strap-3"])
            let request = ControlRequest(device: "strap-1", control: "any", value: .trigger)
            #expect(await world.supervisor.controls.set(request) == .failure(.noSuchDevice("strap-1")))
            let held = try await world.store.heldDevices()
            #expect(held.isEmpty)
            await world.store.wait { store in
                store.events.contains { $0.device == "strap-1" && $0.detail.contains("no longer configured") }
            }
        }
    }

    @Test func `a new device connects although BlueZ already knows its peripheral`() async throws {
        try await SimulatedSupervisor.run { world in
            await world.supervisor.reload(devices: Array(world.configured.dropFirst()), profiles: [profile])
            await world.announcer.wait(forRemovalOf: "strap-1")
            await world.supervisor.reload(devices: world.configured, profiles: [profile])
            await world.announcer.wait(for: "strap-1", .ready, times: 2)
            #expect(world.readyCount("strap-2") == 1)
        }
    }

    @Test func `a device that is added again before its removal has finished reconnects`() async throws {
        try await SimulatedSupervisor.run { world in
            await world.supervisor.reload(devices: [], profiles: [profile])
            await world.supervisor.reload(devices: world.configured, profiles: [profile])
            for name in world.names { await world.announcer.wait(for: name, .ready, times: 2) }
        }
    }

    @Test func `two devices can exchange their addresses`() async throws {
        try await SimulatedSupervisor.run { world in
            let first = try #require(world.addresses["strap-1"])
            let second = try #require(world.addresses["strap-2"])
            let swapped = [
                SupervisedDevice(name: "strap-1", address: second), SupervisedDevice(name: "strap-2", address: first),
            ]
            await world.supervisor.reload(devices: swapped + [world.configured[2]], profiles: [profile])
            for name in ["strap-1", "strap-2"] { await world.announcer.wait(for: name, .ready, times: 2) }
            #expect(world.supervisor.devices.first?.address == second)
            #expect(world.readyCount("strap-3") == 1)
        }
    }

    @Test func `a move to another adapter is not reported as a removal, and another peripheral is`() async throws {
        try await SimulatedSupervisor.run { world in
            let (first, second) = (try #require(world.addresses["strap-1"]), try #require(world.addresses["strap-2"]))
            let adapter = try #require(SimulatedSupervisor.adapter)
            let moved = SupervisedDevice(name: "strap-1", address: first, adapter: adapter)
            let other = SupervisedDevice(name: "strap-3", address: second)
            await world.supervisor.reload(devices: [moved, other], profiles: [profile])
            for name in ["strap-1", "strap-3"] { await world.announcer.wait(for: name, .ready, times: 2) }
            #expect(Set(world.announcer.removed.state) == ["strap-2", "strap-3"])
        }
    }

    @Test func `a device put on hold during a move to another adapter stays disconnected`() async throws {
        try await SimulatedSupervisor.run { world in
            let first = try #require(world.addresses["strap-1"])
            let second = try #require(world.addresses["strap-2"])
            let swapped = [
                SupervisedDevice(name: "strap-1", address: second), SupervisedDevice(name: "strap-2", address: first),
            ]
            await world.supervisor.reload(devices: swapped + [world.configured[2]], profiles: [profile])
            try await world.supervisor.disconnect("strap-1")
            await world.announcer.wait(for: "strap-2", .ready, times: 2)
            await world.announcer.wait(for: "strap-1", .held, times: 2)
            #expect(world.readyCount("strap-1") == 1)
        }
    }

    @Test(arguments: [true, false])
    func `a later reload decides about a device that an earlier one has replaced`(isMove: Bool) async throws {
        let profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        let bench = try Bench([profile])
        let address = isMove ? bench.address : BluetoothAddress(value: 7)
        let successor = SupervisedDevice(name: "strap", address: address, adapter: BluetoothAddress(value: 2))
        let other = SupervisedDevice(name: "bike", address: BluetoothAddress(value: 8))
        // Both wait when the supervisor starts, and the device leaves while it handles the first one.
        await bench.supervisor.reload(devices: [successor], profiles: [profile])
        await bench.supervisor.reload(devices: [other], profiles: [profile])
        try await bench.run {
            for _ in 1...2 { await bench.supervisor.roundTrip() }
            #expect(bench.supervisor.devices.map(\.name) == ["bike"])
            #expect(bench.announcer.removed.state == ["strap"])
        }
    }

    @Test func `a changed profile restarts link sessions on the same links`() async throws {
        try await SimulatedSupervisor.run { world in
            var other = profile
            other.revision = 1
            await world.supervisor.reload(devices: world.configured, profiles: [other])
            for name in world.names { await world.announcer.wait(for: name, .ready, times: 2) }
            for name in world.names { #expect(world.states(name).count { $0 == .connecting } == 1) }
        }
    }

    @Test func `a profile that serves no device restarts no link session`() async throws {
        try await SimulatedSupervisor.run { world in
            let useless = OctetProfile("useless", service: 0x1234, characteristic: 0x1235)
            await world.supervisor.reload(devices: world.configured, profiles: [useless, profile])
            await world.supervisor.reload(devices: Array(world.configured.dropLast()), profiles: [useless, profile])
            await world.announcer.wait(forRemovalOf: "strap-3")
            for name in ["strap-1", "strap-2"] { #expect(world.states(name).count { $0 == .discovering } == 1) }
        }
    }

    @Test func `a device without a fitting profile is retried at once when one is added`() async throws {
        var setup = SimulatedSupervisor.Setup(devices: 1, ready: 0)
        setup.profile = OctetProfile("wrong", service: 0x1234, characteristic: 0x1235, isRequired: true)
        try await SimulatedSupervisor.run(setup) { world in
            await world.announcer.wait(for: "strap-1", .failed)
            await world.supervisor.reload(devices: world.configured, profiles: [profile])
            await world.announcer.wait(for: "strap-1", .ready)
        }
    }
}

extension SimulatedSupervisor {
    fileprivate var configured: [SupervisedDevice] {
        names.compactMap { name in addresses[name].map { SupervisedDevice(name: name, address: $0) } }
    }

    fileprivate func states(_ name: String) -> [LinkState] { announcer.statuses.state[name] ?? [] }
}
