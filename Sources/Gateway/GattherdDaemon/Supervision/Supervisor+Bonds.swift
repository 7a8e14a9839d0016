import GattherdBluetooth
import GattherdMachines
public import GattherdModel

extension Supervisor {
    private var bondDesk: BondService { BondService(central, devices: roster.devices) }

    /// All bonds, and all devices of ours that BlueZ knows, bonded or not.
    public func bonds() async throws(BondError) -> [BondStatus] {
        try await bondDesk.list()
    }

    /// A person ends the bond with a device or address; a device of ours may pair again as soon as it is seen.
    public func forgetBond(with who: String) async throws(BondError) {
        let (desk, keeper) = (bondDesk, surroundings.bonds)
        for link in try await desk.bonded(with: who) {
            keeper.willForget(link)
            try await desk.forget(link)
            keeper.didForget(link, because: "a person ended the bond")
        }
    }

    /// What follows when BlueZ has removed a peripheral: after our own doing there is nothing to wait for.
    func sequel(ofRemoval link: PeripheralID, _ device: String) -> [SupervisorMachine.Event] {
        surroundings.bonds.hasLeft(link) ? hurry(device, unless: [.held, .disconnecting]) : []
    }

    /// What follows when a link has ended: when that showed that the bond is lost there is nothing to wait for.
    func sequel(ofEnd link: PeripheralID, _ device: String) -> [SupervisorMachine.Event] {
        surroundings.bonds.hasJustLost(link) ? hurry(device, unless: [.held, .disconnecting, .failed]) : []
    }

    private func hurry(_ device: String, unless states: Set<LinkState>) -> [SupervisorMachine.Event] {
        let isWanted = board.status(of: device).map { !states.contains($0.state) } ?? false
        return isWanted ? [.link(device: device, .release)] : []
    }
}
