public import GattherdGATT
public import GattherdModel

/// A peripheral of one adapter.
public struct PeripheralID: Hashable, Sendable {
    public let adapter: BluetoothAddress
    public let address: BluetoothAddress

    public init(adapter: BluetoothAddress, address: BluetoothAddress) {
        self.adapter = adapter
        self.address = address
    }
}

/// A local controller.
public struct AdapterStatus: Hashable, Sendable {
    public var address: BluetoothAddress
    /// The kernel's current name, for example `hci0`.
    public var name: String
    public var isPowered: Bool
    public var isDiscovering: Bool
    /// True if a hardware switch or rfkill keeps it off; false if the platform does not report it.
    public var isBlocked = false
    /// True if the platform reports watched advertisements without a scan of ours.
    public var isMonitoring = false

    public init(address: BluetoothAddress, name: String, isPowered: Bool, isDiscovering: Bool) {
        self.address = address
        self.name = name
        self.isPowered = isPowered
        self.isDiscovering = isDiscovering
    }
}

/// The state of a peripheral as far as it is known without a request.
public struct PeripheralStatus: Hashable, Sendable {
    public var id: PeripheralID
    /// The advertised name: untrusted text from the air.
    public var name: String?
    /// The signal strength in dBm; present only while a scan receives the peripheral.
    public var rssi: Int?
    public var services: [BluetoothUUID]
    /// True if the address changes from time to time and identifies no device: Core Specification Vol 6, Part B,
    /// 1.3.2.2.
    public var hasPrivateAddress = false
    /// The data of all its advertisements since the platform knows it.
    public var advertisement = AdvertisementData()
    /// The number of advertisements that scans reported.
    public var heard: UInt64 = 0
    public var isConnected: Bool
    /// The number of its newest link, which grows with each link of any peripheral; 0 before the first.
    public var link: UInt64 = 0
    public var isServicesResolved: Bool
    public var isPaired: Bool

    public init(id: PeripheralID) {
        self.id = id
        services = []
        isConnected = false
        isServicesResolved = false
        isPaired = false
    }
}

/// The events of a central, in order.
public enum CentralEvent: Hashable, Sendable {
    /// bluetoothd is on the bus and its objects are known; the events of all adapters and peripherals follow.
    case available
    /// The bus denies this user access to bluetoothd; ``unavailable(detail:)`` follows.
    case accessDenied(detail: String)
    /// bluetoothd left the bus, or the bus is gone: all known state is invalid.
    case unavailable(detail: String)
    case adapterChanged(AdapterStatus)
    case adapterRemoved(BluetoothAddress)
    /// New or different: seen, connected, resolved, renamed.
    case peripheralChanged(PeripheralStatus)
    /// The peripheral ended, or the radio lost, a link that was up.
    case disconnected(PeripheralID)
    /// The reason of a ``disconnected(_:)`` event, which it follows a moment later.
    case linkEnded(PeripheralID, DisconnectReason)
    case peripheralRemoved(PeripheralID)
    /// The GATT table of a connected peripheral has changed.
    case servicesChanged(PeripheralID)
    /// A GATT table was truncated, because the peripheral has too many attributes.
    case tableCut(PeripheralID, kept: Int, ignored: Int)
    /// A subscription ended by itself while the link is up.
    case subscriptionEnded(SubscriptionToken, PeripheralID)
}

/// One characteristic of a connected peripheral; dies with the GATT table that it was read from.
public struct RemoteCharacteristic: Hashable, Sendable {
    public let peripheral: PeripheralID
    public let service: BluetoothUUID
    public let uuid: BluetoothUUID
    /// The opaque identity of this characteristic among characteristics of one UUID.
    public let handle: String
    public let properties: CharacteristicProperties

    public init(
        peripheral: PeripheralID,
        service: BluetoothUUID,
        uuid: BluetoothUUID,
        handle: String,
        properties: CharacteristicProperties
    ) {
        self.peripheral = peripheral
        self.service = service
        self.uuid = uuid
        self.handle = handle
        self.properties = properties
    }
}

/// The subscriber's number of a subscription, passed with each value.
public struct SubscriptionToken: Hashable, Sendable {
    public let value: UInt64

    public init(_ value: UInt64) {
        self.value = value
    }
}

/// A receiver of values on the central's thread; must not block or call the central.
public protocol NotificationSink: AnyObject, Sendable {
    /// - Parameters:
    ///   - octets: The value; borrowed for the call.
    ///   - token: The subscription.
    ///   - time: The time of reception.
    func receive(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp)

    /// Receives a value that another client may have read, so that it may be no notification.
    func receiveRead(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp)

    /// Passes the received values on, because no more are available now.
    func flush()
}

extension NotificationSink {
    /// Receives the value as a notification: the device sent it in any case.
    public func receiveRead(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
        receive(octets, for: token, at: time)
    }

    public func flush() {}
}

/// The path of values from BlueZ.
public enum NotificationPath: Hashable, Sendable {
    /// D-Bus signals, which queue in the bus while this program stalls.
    case signals
    /// A socket of our own: cheaper, but values beyond 278 unread ones are lost.
    case socket
}

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
    /// Already scanning is success.
    func startDiscovery(on adapter: BluetoothAddress, services: [BluetoothUUID]) async throws(BluetoothError)
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
    func renewSession() async

    /// Removes a peripheral from BlueZ, with its cached GATT table.
    func forget(_ peripheral: PeripheralID) async throws(BluetoothError)

    /// Returns true if the platform answers within a few seconds, and also while ``events`` report that it is away.
    func isResponsive() async -> Bool

    /// Delivers all values that the platform has sent until now; stops waiting after `limit`.
    func catchUp(within limit: Duration) async

    /// Returns when the central's thread has handled its pending work.
    func pulse() async

    /// Ends all subscriptions, then the connection to the bus; links stay up.
    func close() async
}

extension CentralBackend {
    public func isResponsive() async -> Bool { true }
}
