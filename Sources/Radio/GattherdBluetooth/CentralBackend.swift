public import GattherdGATT
public import GattherdModel

/// A peripheral as one adapter sees it.
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
    /// The kernel's name of today, for example `hci0`.
    public var name: String
    public var isPowered: Bool
    public var isDiscovering: Bool
    /// A switch on the machine, or rfkill, keeps it off; false also when the platform does not say.
    public var isBlocked = false
    /// The platform tells of the advertisements that are wanted without a scan of ours.
    public var isMonitoring = false

    public init(address: BluetoothAddress, name: String, isPowered: Bool, isDiscovering: Bool) {
        self.address = address
        self.name = name
        self.isPowered = isPowered
        self.isDiscovering = isDiscovering
    }
}

/// What is known of a peripheral without asking it.
public struct PeripheralStatus: Hashable, Sendable {
    public var id: PeripheralID
    /// What it calls itself; text from the air, not to be trusted.
    public var name: String?
    /// In dBm; present only while a scan sees it.
    public var rssi: Int?
    public var services: [BluetoothUUID]
    /// Its address is one that changes from time to time, Core Specification Vol 6, Part B, 1.3.2.2: it tells nobody apart.
    public var hasPrivateAddress = false
    /// What its advertisements have said, added up for as long as the platform knows it.
    public var advertisement = AdvertisementData()
    /// How many advertisements a scan has told of.
    public var heard: UInt64 = 0
    public var isConnected: Bool
    /// Which link is, or was, its newest: a number that grows with each link of any peripheral; 0 before the first.
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

/// What happened on our side of Bluetooth, in order.
public enum CentralEvent: Hashable, Sendable {
    /// bluetoothd is on the bus and its objects are known; all adapters and peripherals are told again.
    case available
    /// This user may not talk to bluetoothd; ``unavailable(detail:)`` follows.
    case accessDenied(detail: String)
    /// bluetoothd left the bus, or the bus is gone: nothing that was known is true any more.
    case unavailable(detail: String)
    case adapterChanged(AdapterStatus)
    case adapterRemoved(BluetoothAddress)
    /// New or different: seen, connected, resolved, renamed.
    case peripheralChanged(PeripheralStatus)
    /// The peripheral ended, or the radio lost, a link that was up.
    case disconnected(PeripheralID)
    /// Why the link that was told as ``disconnected(_:)`` has ended; a moment later, never without it.
    case linkEnded(PeripheralID, DisconnectReason)
    case peripheralRemoved(PeripheralID)
    /// The GATT table of a connected peripheral is another one now.
    case servicesChanged(PeripheralID)
    /// A GATT table that is handed out has fewer attributes than the peripheral: there are too many.
    case tableCut(PeripheralID, kept: Int, ignored: Int)
    /// A subscription ended by itself while the link is up.
    case subscriptionEnded(SubscriptionToken, PeripheralID)
}

/// One characteristic of a connected peripheral; dies with the GATT table that it was read from.
public struct RemoteCharacteristic: Hashable, Sendable {
    public let peripheral: PeripheralID
    public let service: BluetoothUUID
    public let uuid: BluetoothUUID
    /// Tells two characteristics of one UUID apart; opaque.
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

/// The subscriber's own number for a subscription, given back with each value.
public struct SubscriptionToken: Hashable, Sendable {
    public let value: UInt64

    public init(_ value: UInt64) {
        self.value = value
    }
}

/// Takes values on the central's thread: must not block, must not call back.
public protocol NotificationSink: AnyObject, Sendable {
    /// - Parameters:
    ///   - octets: The value; borrowed for the call.
    ///   - token: Whose value it is.
    ///   - time: When it was received.
    func receive(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp)

    /// Takes a value that may be the answer to a read of another client, and no notification.
    func receiveRead(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp)

    /// Passes the received values on: no more are at hand now.
    func flush()
}

extension NotificationSink {
    /// Takes the value as a notification: it is one of the device's values in any case.
    public func receiveRead(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
        receive(octets, for: token, at: time)
    }

    public func flush() {}
}

/// How values come out of BlueZ.
public enum NotificationPath: Hashable, Sendable {
    /// D-Bus signals: survive a drop, queue in the bus while we stall.
    case signals
    /// A socket of our own: cheaper, loses what does not fit into 278 messages.
    case socket
}

/// Our side of Bluetooth; implemented on org.bluez.
///
/// Every operation has its own deadline and ends when its task is cancelled. One consumer reads
/// ``events``; it starts with what is true already.
public protocol CentralBackend: PairingBackend {
    /// Everything that happens, in order, from the start.
    var events: AsyncStream<CentralEvent> { get }

    /// Keeps the way to the platform open until ``close()``; nothing works, and no event comes, before it runs.
    func run() async

    /// Scans for Low Energy peripherals until ``stopDiscovery(on:)``, power-off or loss of the adapter.
    ///
    /// Already scanning is success.
    func startDiscovery(on adapter: BluetoothAddress, services: [BluetoothUUID]) async throws(BluetoothError)
    func stopDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError)

    /// Hands on the advertisements that are wanted, from now on; those of an adapter come while it scans, or without that
    /// where ``AdapterStatus/isMonitoring`` says so.
    func watch(_ advertisements: AdvertisementWatch) async

    /// Makes the link; returns when it is up. At the deadline the attempt is cancelled.
    func connect(_ peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError)
    /// Ends the link or the attempt; not connected is success.
    func disconnect(_ peripheral: PeripheralID) async throws(BluetoothError)
    /// Waits until BlueZ has the whole GATT table, and gives its characteristics.
    func characteristics(
        of peripheral: PeripheralID,
        timeout: Duration
    ) async throws(BluetoothError) -> [RemoteCharacteristic]

    /// Waits until the platform has the whole GATT table, and gives it.
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
    /// A subscription that stands goes on without a gap: its values go to the new `sink` from now on.
    func subscribe(
        to characteristic: RemoteCharacteristic,
        by path: NotificationPath,
        token: SubscriptionToken,
        sink: any NotificationSink
    ) async throws(BluetoothError)
    /// Ends a subscription; what comes before this returns still goes to its sink.
    func unsubscribe(_ token: SubscriptionToken) async throws(BluetoothError)

    /// Switches an adapter on or off, for every program.
    func setPowered(_ isPowered: Bool, adapter: BluetoothAddress) async throws(BluetoothError)

    /// Leaves the platform and comes back as somebody new: what it believed of us is forgotten, subscriptions and
    /// scans end, links stay up. ``CentralEvent/unavailable(detail:)`` and ``CentralEvent/available`` follow.
    func renewSession() async

    /// Asks BlueZ to forget a peripheral, with its cached GATT table.
    func forget(_ peripheral: PeripheralID) async throws(BluetoothError)

    /// Asks the platform for a sign of life, and waits a few seconds for it; true also while it is known to be away,
    /// which ``events`` tell.
    func isResponsive() async -> Bool

    /// Delivers all values that the platform has sent until now; gives up after `limit`.
    func catchUp(within limit: Duration) async

    /// Returns when the platform's events are being attended to.
    func pulse() async

    /// Ends all subscriptions, then the connection to the bus; links stay up.
    func close() async
}

extension CentralBackend {
    public func isResponsive() async -> Bool { true }
}
