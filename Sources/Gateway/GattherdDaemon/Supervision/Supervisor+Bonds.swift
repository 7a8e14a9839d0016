import GattherdBluetooth
import GattherdMachines
public import GattherdModel

extension Supervisor {
    private var bondService: BondService { BondService(central, devices: configuredDevices.devices) }

    /// Returns all bonds, and all enrolled devices that BlueZ knows, bonded or not.
    public func bonds() async throws(BondError) -> [BondStatus] {
        try await bondService.list()
    }

    /// Removes the bond with a device or address; an enrolled device may pair again after its next advertisement.
    public func forgetBond(with who: String) async throws(BondError) {
        let (service, keeper) = (bondService, sessionContext.bonds)
        for link in try await service.bonded(with: who) {
            keeper.willForget(link)
            try await service.forget(link)
            keeper.didForget(link, because: "a person ended the bond")
        }
    }

    /// Returns the events after BlueZ removed a peripheral: a removal by the daemon needs no back-off.
    func sequel(ofRemoval link: PeripheralID, _ device: String) -> [SupervisorMachine.Event] {
        sessionContext.bonds.hasLeft(link) ? hurry(device, unless: [.held, .disconnecting]) : []
    }

    /// Returns the events after the end of a link: a link that ended for a lost bond needs no back-off.
    func sequel(ofEnd link: PeripheralID, _ device: String) -> [SupervisorMachine.Event] {
        sessionContext.bonds.hasJustLost(link) ? hurry(device, unless: [.held, .disconnecting, .failed]) : []
    }

    private func hurry(_ device: String, unless states: Set<LinkState>) -> [SupervisorMachine.Event] {
        let isWanted = board.status(of: device).map { !states.contains($0.state) } ?? false
        return isWanted ? [.link(device: device, .release)] : []
    }
}
