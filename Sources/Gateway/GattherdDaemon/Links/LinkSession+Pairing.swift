import GattherdBluetooth
import GattherdMachines
import GattherdModel
import GattherdSync

extension LinkSession {
    private var bonds: BondKeeper { sessionContext.bonds }

    /// Pairs before the first request if the device's configuration demands it or an earlier request needed it.
    ///
    /// - Returns: True if the device has paired.
    func pair() async throws(LinkFault) -> Bool {
        guard let method = try bonds.method(for: peripheral) else { return false }
        do throws(BluetoothError) {
            // The Security Manager's own limit is 30 s: Core Specification, Vol 3, Part H, "Security Manager Protocol".
            try await sessionContext.central.pair(peripheral, by: method, timeout: .seconds(45))
            return true
        } catch {
            throw bonds.pairingFailed(error, with: peripheral)
        }
    }

    /// Reports a rejected link at once: BlueZ 5.66 never completes a request whose pairing was refused.
    func watchPairing() async {
        for await standings in bonds.standings.watch() {
            guard let standing = standings[peripheral] else { continue }
            if let verdict = standing.verdict { return report(.failed(verdict)) }
            guard standing.mayBeStuck, (try? await Task.sleep(for: .seconds(4), clock: .loop)) != nil else { continue }
            guard bonds.standings.state[peripheral]?.mayBeStuck == true else { continue }
            return report(.failed(LinkFault(.timedOut, "the device has paired, but a request was not answered")))
        }
    }
}

extension Supervisor {
    /// Makes a link, after repairing its bond if necessary.
    func makeLink(_ link: PeripheralID) async throws(LinkFault) {
        let bonds = sessionContext.bonds
        if let verdict = bonds.standings.state[link]?.verdict { throw verdict }
        do throws(BluetoothError) {
            if bonds.mustRepair(link) { try await repairBond(link) }
            bonds.attemptBegan(link)
            try await central.connect(link, timeout: settings.connectTimeout)
            bonds.attemptSucceeded(link)
        } catch {
            if error.kind == .notConnected { bonds.attemptSucceeded(link) }
            if error.kind == .authentication { bonds.encryptionFailed(link) }
            // A fault that is already known ends the attempts at once.
            if let verdict = bonds.standings.state[link]?.verdict {
                _ = bonds.hasJustLost(link)
                throw verdict
            }
            let fault = LinkFault(error, while: "connecting")
            throw bonds.mustRepair(link) ? fault.transient : fault
        }
    }

    /// Removes a bond that the device has lost; the device pairs again after its next advertisement.
    private func repairBond(_ link: PeripheralID) async throws(BluetoothError) {
        let bonds = sessionContext.bonds
        bonds.willForget(link)
        try await central.forget(link)
        bonds.didForget(link, because: "it had lost its bond and must pair again")
        throw BluetoothError(.unknownPeripheral, "the bond is removed; looking for the device again")
    }
}
