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
    /// The keeper of the daemon's own bonds; `nil` without a daemon.
    private let keeper: BondKeeper?

    /// - Parameters:
    ///   - central: The Bluetooth central.
    ///   - devices: The enrolled devices.
    public init(_ central: any CentralBackend, devices: some Sequence<SupervisedDevice>) {
        self.init(central, devices: devices, keeper: nil)
    }

    init(_ central: any CentralBackend, devices: some Sequence<SupervisedDevice>, keeper: BondKeeper?) {
        self.central = central
        self.keeper = keeper
        names = Dictionary(devices.map { ($0.address, $0.name) }, uniquingKeysWith: { first, _ in first })
    }

    /// Returns all bonds, and the enrolled devices that BlueZ knows, with or without a bond.
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

    /// Removes all bonds with a device or an address, and ends their links.
    ///
    /// An enrolled device may pair again after its next advertisement.
    ///
    /// - Throws: ``BondError``, also if there is no bond.
    public func forget(_ target: String) async throws(BondError) {
        for link in try await bonded(with: target) {
            keeper?.willForget(link)
            do throws(BluetoothError) { try await central.forget(link) } catch { throw BondError(error) }
            keeper?.didForget(link, because: "a person ended the bond")
        }
    }

    /// Returns the peripherals that have a bond, for a device or an address.
    private func bonded(with target: String) async throws(BondError) -> [PeripheralID] {
        let named = names.first { $0.value == target }?.key
        guard let address = named ?? BluetoothAddress(anyNotation: target) else {
            throw BondError("'\(target)' is neither a device nor an address; see gattherd bond list")
        }
        let bonded = try await bonds().filter { $0.peripheral.address == address && $0.isKept }
        guard !bonded.isEmpty else { throw BondError("there is no bond with \(target); see gattherd bond list") }
        return bonded.map(\.peripheral)
    }

    private func bonds() async throws(BondError) -> [Bond] {
        do throws(BluetoothError) { return try await central.bonds() } catch { throw BondError(error) }
    }
}

extension Bond {
    /// True if BlueZ keeps any state that a removal would clear.
    fileprivate var isKept: Bool { isPaired || isBonded || isTrusted }
}
