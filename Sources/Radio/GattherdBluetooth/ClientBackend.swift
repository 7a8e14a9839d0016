public import GattherdGATT

/// What a scan asks for.
public struct DiscoveryFilter: Hashable, Sendable {
    /// Those that advertise one of these; all when empty.
    public var services: Set<BluetoothUUID>
    /// Whether an advertisement that says nothing new is told, too.
    public var reportsDuplicates: Bool

    public init(services: Set<BluetoothUUID> = [], reportsDuplicates: Bool = false) {
        self.services = services
        self.reportsDuplicates = reportsDuplicates
    }
}

/// What ``Central`` needs of a platform beyond what a daemon does.
///
/// The same rules: every operation has its own deadline and ends when its task is cancelled.
public protocol ClientBackend: CentralBackend {
    /// As ``CentralBackend/startDiscovery(on:services:)``; while scanning it changes the filter.
    func startDiscovery(on adapter: BluetoothAddress, filter: DiscoveryFilter) async throws(BluetoothError)

    /// What is known of a peripheral now, also when it has not been told yet; `nil` for nothing.
    func status(of peripheral: PeripheralID) async -> PeripheralStatus?

    func write(_ octets: [UInt8], to descriptor: RemoteDescriptor) async throws(BluetoothError)

    /// Sends a write command as soon as the platform has room for it.
    func writeWithoutResponse(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic
    ) async throws(BluetoothError)

    /// The ATT MTU of the link in octets; `nil` when the platform does not say.
    func mtu(of peripheral: PeripheralID) async throws(BluetoothError) -> Int?
    /// How strongly the peripheral is received now, in dBm.
    ///
    /// - Throws: `notSupported` when the platform does not know, as BlueZ unless a scan hears the peripheral.
    func rssi(of peripheral: PeripheralID) async throws(BluetoothError) -> Int
}
