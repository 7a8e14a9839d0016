import GattherdBluetooth
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdDaemon

@Suite(.timeLimit(.minutes(1))) struct LeasedDeviceTests {
    private let profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)

    @Test func `a device with a lease is connected while this gateway owns it`() async throws {
        let bench = try Bench([profile], leases: LeaseBoard())
        try await bench.run {
            bench.powerOn()
            bench.supervisor.withdraw("strap", "owned by gateway east")
            await bench.announcer.wait(for: "strap", .disconnected)
            #expect(!bench.central.calls.state.contains(.connect))
            bench.supervisor.admit("strap")
            await bench.announcer.wait(for: "strap", .ready)
            bench.supervisor.withdraw("strap", "owned by gateway east")
            await bench.announcer.wait(for: "strap", .disconnected, times: 2)
            let link = bench.supervisor.status.link(of: "strap")
            #expect(link?.reason == .ownedElsewhere && link?.detail == "owned by gateway east")
        }
        #expect(bench.central.calls.state.filter { $0 == .connect || $0 == .disconnect } == [.connect, .disconnect])
    }

    @Test func `the strength of advertisements is recorded for bids`() async throws {
        let board = LeaseBoard()
        let bench = try Bench([profile], leases: board)
        try await bench.run {
            await bench.central.wait(for: .watch)
            let id = PeripheralID(adapter: bench.adapter, address: bench.address)
            bench.central.advertise(HeardAdvertisement(peripheral: id, name: nil, rssi: -61, frames: []))
            let (address, adapter) = (id.address.description, id.adapter.description)
            #expect(board.drainSightings() == [LeaseBoard.Sighting(address: address, adapter: adapter, rssi: -61)])
        }
    }
}
