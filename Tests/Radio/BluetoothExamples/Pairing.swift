import GattherdBlueZ

func pairLock(_ lock: Peripheral, passkey digits: String) async throws {
    guard let passkey = Passkey(digits) else { return }
    try await lock.pair(by: .passkey(passkey))
    print(lock.isPaired ? "paired" : "not paired")
}

final class Doorkeeper: PairingDelegate {
    let known: Set<BluetoothAddress>

    init(known: Set<BluetoothAddress>) {
        self.known = known
    }

    func answer(_ question: PairingRequest, from peripheral: PeripheralID) -> PairingResponse {
        guard known.contains(peripheral.address) else { return .rejected("nobody we know") }
        return PairingMethod.justWorks.answer(to: question)
    }
}

func readSecret(_ peripheral: Peripheral) async throws -> [UInt8] {
    await peripheral.central.answerPairing(with: Doorkeeper(known: [peripheral.address]))
    return try await peripheral.readValue(for: 0xFFF1)
}

func forgetAllPeripherals(_ central: Central) async throws {
    for bond in try await central.bonds() where bond.isPaired {
        print("forgetting", bond.name ?? "\(bond.peripheral.address)")
        try await central.forget(central.peripheral(bond.peripheral))
    }
}
