public import GattherdGATT

/// The filter of a scan.
public struct DiscoveryFilter: Hashable, Sendable {
    /// The services of which a peripheral must advertise one; empty for all peripherals.
    public var services: Set<BluetoothUUID>
    /// True if repeated advertisements are reported too.
    public var reportsDuplicates: Bool

    public init(services: Set<BluetoothUUID> = [], reportsDuplicates: Bool = false) {
        self.services = services
        self.reportsDuplicates = reportsDuplicates
    }
}

/// The operations of a platform that ``Central`` needs beyond ``CentralBackend``.
///
/// Here too, every operation has its own deadline and ends when its task is cancelled.
public protocol ClientBackend: CentralBackend {
    /// Starts a scan as ``CentralBackend/startDiscovery(on:services:)`` does, or changes the filter of a running one.
    func startDiscovery(on adapter: BluetoothAddress, filter: DiscoveryFilter) async throws(BluetoothError)

    /// The current state of a peripheral, also before its event was published; `nil` if it is unknown.
    func status(of peripheral: PeripheralID) async -> PeripheralStatus?

    func write(_ octets: [UInt8], to descriptor: RemoteDescriptor) async throws(BluetoothError)

    /// Sends a write command as soon as the platform has room for it.
    func writeWithoutResponse(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic
    ) async throws(BluetoothError)

    /// The ATT MTU of the link in octets; `nil` if the platform does not report it.
    func mtu(of peripheral: PeripheralID) async throws(BluetoothError) -> Int?
    /// The current signal strength of the peripheral in dBm.
    ///
    /// - Throws: `notSupported` if the platform does not know, like BlueZ unless a scan receives the peripheral.
    func rssi(of peripheral: PeripheralID) async throws(BluetoothError) -> Int
}
