import GattherdBluetooth
import GattherdMachines
import GattherdModel
import GattherdSync

/// The pairing of a link during its session.
struct SessionPairing: Sendable {
    /// The Security Manager's own limit is 30 s: Core Specification, Vol 3, Part H, "Security Manager Protocol".
    private static let timeout = Duration.seconds(45)
    /// The time after which a request counts as unanswered once the device has paired; ATT itself would wait 30 s:
    /// Core Specification, Vol 3, Part F, "Transaction".
    private static let responseLimit = Duration.seconds(4)

    let link: ServedLink

    private var bonds: BondKeeper { link.context.bonds }

    /// Pairs before the first request if the device's configuration demands it or an earlier request needed it.
    ///
    /// - Returns: True if the device has paired.
    func pair() async throws(LinkFault) -> Bool {
        guard let method = try bonds.method(for: link.peripheral) else { return false }
        do throws(BluetoothError) {
            try await link.central.pair(link.peripheral, by: method, timeout: Self.timeout)
            return true
        } catch {
            throw bonds.pairingFailed(error, with: link.peripheral)
        }
    }

    /// Returns the fault of a rejected link at once: BlueZ 5.66 never completes a request whose pairing was refused.
    ///
    /// - Returns: `nil` if cancelled.
    func fault() async -> LinkFault? {
        for await sessionBonds in bonds.sessionBonds.watch() {
            guard let bond = sessionBonds[link.peripheral] else { continue }
            if let fault = bond.fault { return fault }
            guard bond.mayBeStuck, (try? await Task.sleep(for: Self.responseLimit, clock: .loop)) != nil else {
                continue
            }
            guard bonds.sessionBonds.state[link.peripheral]?.mayBeStuck == true else { continue }
            return LinkFault(.timedOut, "the device has paired, but a request was not answered")
        }
        return nil
    }
}

/// Makes links, after repairing their bonds if necessary.
struct LinkMaker: Sendable {
    let central: any CentralBackend
    let bonds: BondKeeper
    let connectTimeout: Duration

    func connect(_ link: PeripheralID) async throws(LinkFault) {
        if let fault = bonds.fault(of: link) { throw fault }
        do throws(BluetoothError) {
            if bonds.mustRepair(link) { try await repairBond(link) }
            bonds.attemptBegan(link)
            try await central.connect(link, timeout: connectTimeout)
            bonds.attemptSucceeded(link)
        } catch {
            if error.kind == .notConnected { bonds.attemptSucceeded(link) }
            if error.kind == .authentication { bonds.encryptionFailed(link) }
            // A fault that is already known ends the attempts at once.
            if let fault = bonds.fault(of: link) {
                _ = bonds.hasJustLost(link)
                throw fault
            }
            let fault = LinkFault(error, while: "connecting")
            throw bonds.mustRepair(link) ? fault.transient : fault
        }
    }

    /// Removes a bond that the device has lost; the device pairs again after its next advertisement.
    private func repairBond(_ link: PeripheralID) async throws(BluetoothError) {
        bonds.willForget(link)
        try await central.forget(link)
        bonds.didForget(link, because: "it had lost its bond and must pair again")
        throw BluetoothError(.unknownPeripheral, "the bond is removed; looking for the device again")
    }
}
