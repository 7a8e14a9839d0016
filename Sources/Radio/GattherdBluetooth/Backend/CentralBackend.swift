public import GattherdGATT

/// The central role of Bluetooth; implemented on org.bluez.
///
/// Every operation has its own deadline and ends when its task is cancelled. One consumer reads ``events``, which start
/// with the current state.
public protocol CentralBackend: PairingBackend {
    /// All events in order, from the start.
    var events: AsyncStream<CentralEvent> { get }

    /// Keeps the connection to the platform until ``close()``; operations and events need it.
    func run() async

    /// Scans for Low Energy peripherals until ``stopDiscovery(on:)``, power-off or loss of the adapter.
    ///
    /// Does nothing if the adapter already scans.
    func startDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError)
    func stopDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError)

    /// Replaces the watched advertisements. An adapter reports them while it scans, or without a scan if
    /// ``AdapterStatus/isMonitoring``.
    func watch(_ advertisements: AdvertisementWatch) async

    /// Connects; returns when the link is up. The deadline cancels the attempt.
    func connect(_ peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError)
    /// Ends the link or the attempt; not connected is success.
    func disconnect(_ peripheral: PeripheralID) async throws(BluetoothError)
    /// Waits until BlueZ has the whole GATT table, and returns its characteristics.
    func characteristics(
        of peripheral: PeripheralID,
        timeout: Duration
    ) async throws(BluetoothError) -> [RemoteCharacteristic]

    /// Waits until the platform has the whole GATT table, and returns it.
    func services(of peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError) -> [RemoteService]

    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8]
    func read(_ descriptor: RemoteDescriptor) async throws(BluetoothError) -> [UInt8]
    func write(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic,
        withResponse: Bool
    ) async throws(BluetoothError)

    /// Enables notifications or indications; values go to `sink` under `token` until the link ends.
    ///
    /// An existing subscription continues without a gap: its values go to the new `sink` from now on.
    func subscribe(
        to characteristic: RemoteCharacteristic,
        by path: NotificationPath,
        token: SubscriptionToken,
        sink: any NotificationSink
    ) async throws(BluetoothError)
    /// Ends a subscription; values that arrive before the return still go to its sink.
    func unsubscribe(_ token: SubscriptionToken) async throws(BluetoothError)

    /// Switches an adapter on or off, for every program.
    func setPowered(_ isPowered: Bool, adapter: BluetoothAddress) async throws(BluetoothError)

    /// Disconnects from the platform and connects again as a new client: subscriptions and scans end, links stay up.
    ///
    /// ``CentralEvent/unavailable(detail:)`` and ``CentralEvent/available`` follow.
    func reconnectToBus() async

    /// Removes a peripheral from BlueZ, with its cached GATT table.
    func forget(_ peripheral: PeripheralID) async throws(BluetoothError)

    /// Returns true if the platform answers within a few seconds, and also while ``events`` report that it is away.
    func isResponsive() async -> Bool

    /// Delivers all values that the platform has sent until now; stops waiting after `limit`.
    func catchUp(within limit: Duration) async

    /// Returns when the central's thread has handled its pending work.
    func roundTrip() async

    /// Ends all subscriptions, then the connection to the bus; links stay up.
    ///
    /// Operations under way, such as a pairing, fail.
    func close() async
}

extension CentralBackend {
    public func isResponsive() async -> Bool { true }
}

/// The filter of a scan.
///
/// The filter has no services: BlueZ would hide peripherals that have nothing but service data of them.
public struct DiscoveryFilter: Hashable, Sendable {
    /// True if repeated advertisements are reported too.
    public var reportsDuplicates: Bool

    public init(reportsDuplicates: Bool = false) {
        self.reportsDuplicates = reportsDuplicates
    }
}

/// The operations of a platform that ``Central`` needs beyond ``CentralBackend``.
///
/// Here too, every operation has its own deadline and ends when its task is cancelled.
public protocol ClientBackend: CentralBackend {
    /// Starts a scan as ``CentralBackend/startDiscovery(on:)`` does, or changes the filter of a running one.
    func startDiscovery(on adapter: BluetoothAddress, filter: DiscoveryFilter) async throws(BluetoothError)

    /// The current state of a peripheral, also before its event was published; `nil` if it is unknown.
    func status(of peripheral: PeripheralID) async -> PeripheralStatus?

    /// Waits, while the GATT table may be changing, for the characteristic that has the UUIDs of a former one.
    ///
    /// Returns `nil` if the platform does not know it before it has the whole table.
    func successor(
        of characteristic: RemoteCharacteristic,
        timeout: Duration
    ) async throws(BluetoothError) -> RemoteCharacteristic?

    func write(_ octets: [UInt8], to descriptor: RemoteDescriptor) async throws(BluetoothError)

    /// Sends a write command as soon as the platform has room for it.
    func writeWithoutResponse(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic
    ) async throws(BluetoothError)

    /// The ATT MTU of the link in bytes; `nil` if the platform does not report it.
    func mtu(of peripheral: PeripheralID) async throws(BluetoothError) -> Int?
    /// The current signal strength of the peripheral in dBm.
    ///
    /// - Throws: `notSupported` if the platform does not know, like BlueZ unless a scan receives the peripheral.
    func rssi(of peripheral: PeripheralID) async throws(BluetoothError) -> Int
}

extension ClientBackend {
    public func successor(
        of characteristic: RemoteCharacteristic,
        timeout: Duration
    ) async throws(BluetoothError) -> RemoteCharacteristic? { nil }
}
