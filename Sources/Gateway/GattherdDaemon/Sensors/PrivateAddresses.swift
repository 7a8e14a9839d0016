import GattherdGATT
import GattherdModel

/// The resolvable private addresses of devices whose identity key is known.
///
/// Such an address is a random half, and a hash of it with the key: Core Specification Vol 6, Part B, 1.3.2.3.
struct PrivateAddresses: Sendable {
    typealias Hash = @Sendable (IdentityKey, UInt32) -> UInt32?

    /// The maximum number of addresses in memory; any transmitter can invent more.
    static let most = 1024

    private let hash: Hash?
    private var keys: [(device: BluetoothAddress, key: IdentityKey)] = []
    /// The addresses heard so far, and the devices that they belong to.
    private var known: [BluetoothAddress: BluetoothAddress?] = [:]

    /// - Parameter hash: The hash of a random half with a key; `nil` if no address can be resolved.
    init(hash: Hash?) {
        self.hash = hash
    }

    /// Replaces the keys of all devices.
    mutating func replace(_ keys: [(device: BluetoothAddress, key: IdentityKey)]) {
        (self.keys, known) = (keys, [:])
    }

    /// Returns the configured address of the device with a private address; `nil` if it belongs to none.
    mutating func device(of address: BluetoothAddress) -> BluetoothAddress? {
        guard !keys.isEmpty, let hash, address.isResolvable else { return nil }
        if let device = known[address] { return device }
        let (random, wanted) = (UInt32(address.value >> 24), UInt32(address.value & 0xFF_FFFF))
        let device = keys.first { hash($0.key, random) == wanted }?.device
        if known.count >= Self.most { known.removeAll(keepingCapacity: true) }
        known[address] = .some(device)
        return device
    }
}
