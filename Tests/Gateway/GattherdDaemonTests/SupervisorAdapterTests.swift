import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdMachines
import GattherdModel
import GattherdSync
import Testing

@Suite(.timeLimit(.minutes(3))) struct SupervisorAdapterTests {
    private let profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
    private let other = BluetoothAddress(value: 0x02)

    @Test
    func `an adapter that returns with another name is the same adapter`() async throws {
        let bench = try Bench([profile])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.tell.yield(.peripheralRemoved(bench.id))
            bench.central.tell.yield(.adapterRemoved(bench.adapter))
            await bench.announcer.wait(for: "strap", .disconnected)
            let status = AdapterStatus(address: bench.adapter, name: "hci7", isPowered: true, isDiscovering: false)
            bench.central.tell.yield(.adapterChanged(status))
            bench.reportPeripheral(isConnected: false)
            await bench.announcer.wait(for: "strap", .ready, times: 2)
        }
        #expect(bench.supervisor.status.adapters.map(\.name) == ["hci7"])
        #expect(bench.supervisor.status.link(of: "strap")?.adapter == bench.adapter.description)
    }

    @Test
    func `an attempt on an adapter that was removed has ended before the next attempt`() async throws {
        let bench = try Bench([profile])
        bench.central.state.withLock { $0.hangingConnects = 1 }
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .connect)
            bench.central.tell.yield(.peripheralRemoved(bench.id))
            bench.central.tell.yield(.adapterRemoved(bench.adapter))
            await bench.announcer.wait(for: "strap", .disconnected)
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        let attempts = bench.central.calls.state.filter { [.connect, .connectCancelled].contains($0) }
        #expect(attempts == [.connect, .connectCancelled, .connect])
    }

    @Test(arguments: [true, false])
    func `only the configured adapter connects a device`(byDevice: Bool) async throws {
        let bench = try Bench(
            [profile],
            ownAdapter: byDevice ? other : nil,
            usedAdapters: byDevice ? nil : [other]
        )
        try await bench.run {
            bench.powerOn()
            let status = AdapterStatus(address: other, name: "hci1", isPowered: true, isDiscovering: false)
            bench.central.tell.yield(.adapterChanged(status))
            let id = PeripheralID(adapter: other, address: bench.address)
            bench.central.tell.yield(.peripheralChanged(PeripheralStatus(id: id)))
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(bench.supervisor.status.link(of: "strap")?.adapter == other.description)
        #expect(bench.central.calls.state.count { $0 == .connect } == 1)
    }

    @Test
    func `links of other programs are counted until bluetoothd ends`() async throws {
        let bench = try Bench([profile])
        try await bench.run {
            var headset = PeripheralStatus(
                id: PeripheralID(adapter: bench.adapter, address: BluetoothAddress(value: 0x77))
            )
            headset.isConnected = true
            bench.central.tell.yield(.peripheralChanged(headset))
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            #expect(bench.supervisor.status.report(of: bench.adapter)?.links == 2)
            bench.central.tell.yield(.unavailable(detail: "left the bus"))
            await bench.announcer.wait(for: "strap", .disconnected)
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready, times: 2)
            #expect(bench.supervisor.status.report(of: bench.adapter)?.links == 1)
        }
    }

    @Test
    func `a subscription that ends at once is retried, then the link is replaced after a pause`() async throws {
        let bench = try Bench([profile])
        bench.central.state.withLock { $0.endingSubscriptions = 3 }
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .subscribe, times: 4)
            await bench.announcer.wait(for: "strap", .backingOff, times: 2)
            await bench.central.wait(for: .disconnect, times: 2)
        }
        #expect(bench.central.calls.state.count { $0 == .subscribe } == 4)
    }
}
