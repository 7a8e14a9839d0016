public import GattherdGATT

extension SupervisorMachine {
    public enum Event: Equatable, Sendable {
        /// An adapter's properties; `isDiscovering` covers every client's discovery.
        case adapter(BluetoothAddress, isPowered: Bool, isDiscovering: Bool)
        case adapterRemoved(BluetoothAddress)
        /// The adapters that scan for connectionless devices; `nil` for all.
        case listening(Set<BluetoothAddress>?)
        /// True while every adapter searches for peripherals to enrol.
        case seeking(Bool)
        /// The adapter's advertisement monitor became active or inactive.
        case monitoring(BluetoothAddress, Bool)
        /// bluetoothd or the bus is gone; all known state is void.
        case unavailable(detail: String)
        case sighted(device: String, on: BluetoothAddress, Sighting)
        case forgotten(device: String, on: BluetoothAddress)
        case dropped(device: String, on: BluetoothAddress)
        /// The adapter received any advertisement; one event per second is enough.
        case heard(BluetoothAddress)
        /// The number of the adapter's links to peripherals that are not enrolled.
        case otherLinks(BluetoothAddress, Int)
        /// An event for one device's link machine.
        case link(device: String, LinkMachine.Event)
        /// A device was enrolled; a previous device of that name must have ``Effect/left(device:)`` before.
        case enrolled(device: String, pinned: BluetoothAddress?, isHeld: Bool)
        /// A device was dismissed: its link is ended, ``Effect/left(device:)`` follows.
        case dismissed(device: String)
        /// The answer to ``Effect/discovery(_:_:)``.
        case discovery(BluetoothAddress, ticket: Int, DiscoveryMachine.Answer)
        /// The answer to ``Effect/powerCycle(_:)`` and ``Effect/powerOn(_:)``.
        case powered(BluetoothAddress, isOn: Bool)
        /// ``Effect/wake(at:)`` has been reached.
        case wake(at: Duration)
    }

    /// BlueZ's state of a peripheral on one adapter.
    public struct Sighting: Hashable, Sendable {
        public var isConnected: Bool
        /// True unless BlueZ shows a link without discovered services.
        public var isResolved: Bool
        /// The signal strength in dBm; present only during discovery.
        public var rssi: Int?
        /// True if the peripheral has just advertised.
        public var isHeard: Bool

        public init(isConnected: Bool, isResolved: Bool = true, rssi: Int? = nil, isHeard: Bool = false) {
            self.isConnected = isConnected
            self.isResolved = isResolved
            self.rssi = rssi
            self.isHeard = isHeard
        }
    }

    public enum Effect: Equatable, Sendable {
        /// An effect of one device's link machine, with the adapter chosen for it.
        case link(device: String, on: BluetoothAddress?, LinkMachine.Effect)
        case discovery(BluetoothAddress, DiscoveryMachine.Effect)
        /// A recovery step was taken on a failing adapter; for display.
        case remedy(BluetoothAddress, RecoveryLadder.Remedy)
        /// Reconnects to the bus as a new client.
        case reconnectToBus
        /// Powers the adapter off and on.
        case powerCycle(BluetoothAddress)
        /// Powers on an adapter that a power cycle left off.
        case powerOn(BluetoothAddress)
        /// A device whose link counts as up was heard advertising.
        case probe(device: String)
        /// A dismissed device has no activity left.
        case left(device: String)
        /// The adapter's status changed.
        case report(AdapterReport)
        /// Sends ``Event/wake(at:)`` with the same time, at that monotonic time.
        case wake(at: Duration)
    }

    /// The timeouts and pauses of the supervisor.
    public struct Policy: Equatable, Sendable {
        public var link: LinkMachine.Policy
        public var recovery: RecoveryLadder.Policy
        /// The minimum duration of a link on a full adapter before it makes room; `nil` for no limit.
        public var rotation: Duration?

        public init(link: LinkMachine.Policy = .init(), recovery: RecoveryLadder.Policy = .init()) {
            self.link = link
            self.recovery = recovery
        }
    }
}

/// An adapter's status in the supervisor, for display.
public struct AdapterReport: Hashable, Sendable {
    public let address: BluetoothAddress
    /// Links that are up, including those of other programs.
    public internal(set) var links = 0
    /// The adapter's link limit; `nil` while unknown.
    public internal(set) var slots: Int?
    /// Connection attempts under way.
    public internal(set) var attempts = 0
    /// Devices without a free slot on this or any other adapter.
    public internal(set) var waiting: [String] = []
    /// The last recovery step taken on the adapter.
    public internal(set) var lastRemedy: RecoveryLadder.Remedy?

    /// True while the adapter holds as many links as its limit.
    public var isFull: Bool { slots.map { links >= $0 } ?? false }

    init(_ address: BluetoothAddress) {
        self.address = address
    }
}
