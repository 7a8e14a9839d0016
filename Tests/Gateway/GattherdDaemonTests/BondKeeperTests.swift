import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdModel
import Testing

@testable import GattherdDaemon

/// The effect of a bond with one adapter on pairing with other adapters.
struct BondKeeperTests {
    private let first = PeripheralID(adapter: BluetoothAddress(value: 1), address: BluetoothAddress(value: 9))
    private let second = PeripheralID(adapter: BluetoothAddress(value: 2), address: BluetoothAddress(value: 9))

    private func keeper(repairsBond: Bool = false) -> BondKeeper {
        let pairing = DevicePairing(.justWorks, repairsBond: repairsBond)
        let device = SupervisedDevice(name: "lock", address: first.address, pairing: pairing)
        let recorder = EventRecorder(now: { Timestamp(microseconds: 0) })
        return BondKeeper(
            configuredDevices: ConfiguredDevices([device], profiles: []),
            recorder: recorder,
            log: .silent
        )
    }

    private func status(isConnected: Bool, isResolved: Bool = false) -> PeripheralStatus {
        var status = PeripheralStatus(id: first)
        (status.isPaired, status.isConnected, status.isServicesResolved) = (true, isConnected, isResolved)
        return status
    }

    /// Makes a link that ends before its services are resolved, as if the peripheral had lost its keys.
    private func dropEarly(_ keeper: BondKeeper) {
        keeper.handle(.peripheralChanged(status(isConnected: true)))
        keeper.handle(.disconnected(first))
    }

    @Test func `a device with a doubtful bond is not paired with another adapter`() throws {
        let keeper = keeper()
        dropEarly(keeper)
        let fault = #expect(throws: LinkFault.self) { try keeper.method(for: second) }
        #expect(fault?.isPermanent == false)
        #expect(fault?.detail.contains("gattherd bond forget lock") == true)
        keeper.handle(.peripheralChanged(status(isConnected: true, isResolved: true)))
        #expect(try keeper.method(for: second) == .justWorks)
    }

    @Test func `any adapter may pair if bonds are repaired`() throws {
        let keeper = keeper(repairsBond: true)
        dropEarly(keeper)
        #expect(try keeper.method(for: second) == .justWorks)
    }

    @Test func `another adapter may pair after the bond is removed`() throws {
        let keeper = keeper()
        dropEarly(keeper)
        keeper.willForget(first)
        #expect(try keeper.method(for: second) == .justWorks)
    }
}
