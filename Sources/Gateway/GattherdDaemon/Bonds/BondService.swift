public import GattherdBluetooth
import GattherdGATT
public import GattherdModel

/// The reason why a request about bonds failed, as text for people.
public struct BondError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }

    init(_ error: BluetoothError) {
        description = "Bluetooth is not available: \(error.detail)"
    }
}

/// Lists and removes bonds on request.
public struct BondService: Sendable {
    private let central: any CentralBackend
    private let names: [BluetoothAddress: String]

    /// - Parameters:
    ///   - central: The Bluetooth central.
    ///   - devices: The enrolled devices.
    public init(_ central: any CentralBackend, devices: some Sequence<SupervisedDevice>) {
        self.central = central
        names = Dictionary(devices.map { ($0.address, $0.name) }, uniquingKeysWith: { first, _ in first })
    }

    /// Returns all bonds, and all enrolled devices that BlueZ knows, bonded or not.
    public func list() async throws(BondError) -> [BondStatus] {
        try await bonds().filter { $0.isKept || names[$0.peripheral.address] != nil }.map { bond in
            let id = bond.peripheral
            var status = BondStatus(address: id.address.description, adapter: id.adapter.description)
            status.device = names[id.address]
            status.name = bond.name
            (status.bonded, status.trusted, status.connected) = (bond.isBonded, bond.isTrusted, bond.isConnected)
            return status
        }
    }

    /// Returns the peripherals that have a bond, for a device or an address.
    ///
    /// - Throws: ``BondError``, also if there is no bond.
    public func bonded(with who: String) async throws(BondError) -> [PeripheralID] {
        guard let address = names.first(where: { $0.value == who })?.key ?? BluetoothAddress(who) else {
            throw BondError("'\(who)' is neither a device nor an address; see gattherd bond list")
        }
        let bonded = try await bonds().filter { $0.peripheral.address == address && $0.isKept }
        guard !bonded.isEmpty else { throw BondError("there is no bond with \(who); see gattherd bond list") }
        return bonded.map(\.peripheral)
    }

    /// Removes a bond and ends the link.
    public func forget(_ peripheral: PeripheralID) async throws(BondError) {
        do throws(BluetoothError) { try await central.forget(peripheral) } catch { throw BondError(error) }
    }

    private func bonds() async throws(BondError) -> [Bond] {
        do throws(BluetoothError) { return try await central.bonds() } catch { throw BondError(error) }
    }
}

extension Bond {
    /// True if BlueZ keeps any state that a removal would clear.
    fileprivate var isKept: Bool { isPaired || isBonded || isTrusted }
}
