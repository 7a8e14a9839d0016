public import GattherdGATT

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
    /// True if the platform reports watched advertisements without our own scan.
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
