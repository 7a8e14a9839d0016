public import GattherdGATT
public import GattherdModel

/// The supervisor of all devices: adapter choice, connect turns, discovery and recovery of failing adapters.
///
/// A pure state machine: the monotonic time and the random numbers are passed in.
public struct SupervisorMachine: Sendable {
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
        /// The time of ``Effect/wake(at:)`` has come.
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
        /// Reconnect to the bus as a new client.
        case renewSession
        /// Power the adapter off and on.
        case powerCycle(BluetoothAddress)
        /// Power on an adapter that a power cycle left off.
        case powerOn(BluetoothAddress)
        /// A device whose link counts as up was heard advertising.
        case doubt(device: String)
        /// A dismissed device has no activity left.
        case left(device: String)
        /// The adapter's status changed.
        case report(AdapterReport)
        /// Send ``Event/wake(at:)`` with the same time, at that monotonic time.
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

    struct Adapter: Sendable {
        /// True while the adapter is present and on; an absent adapter keeps its learned state.
        var isPowered = false
        var otherLinks = 0
        var slots = SlotBook()
        var rotation = Rotation()
        var discovery = DiscoveryMachine()
        /// The state of the advertisement monitor.
        var passiveScan = PassiveScan()
        /// The time since which some device needs a sighting here; `nil` if none does.
        var lookingSince: Duration?
        var ladder: RecoveryLadder
        /// The time at which the adapter is powered on (again), during a power cycle.
        var powerOnDue: Duration?
        var report: AdapterReport
    }

    struct Device: Sendable {
        var link: LinkMachine
        /// The only adapter that the device may use.
        let pinned: BluetoothAddress?
        /// The device's sightings, by adapter.
        var sightings: [BluetoothAddress: Sighting] = [:]
        /// The adapter of the attempt or link under way.
        var adapter: BluetoothAddress?
        /// Consecutive failed attempts, by adapter.
        var failures: [BluetoothAddress: Int] = [:]
        var lastHeard: Duration?
        /// The end of the time in which other adapters may see the device, before one is chosen.
        var comparedAt: Duration?
        var attempt: Attempt?
        /// The adapter that refused the last attempt at once, perhaps because it was full.
        var refusedBy: BluetoothAddress?
        var timer: Timer?
        /// The last link, if it proved dead, until the next one is ready.
        var deadLink: DeadLink?
        /// True after dismissal; the device is removed once its link has ended.
        var isLeaving = false

        init(link: LinkMachine, pinned: BluetoothAddress?) {
            self.link = link
            self.pinned = pinned
        }
    }

    /// A link that was up and did not answer.
    struct DeadLink: Equatable {
        let adapter: BluetoothAddress
        let since: Duration
    }

    /// An attempt to connect.
    struct Attempt: Equatable {
        let since: Duration
        /// True if BlueZ showed a link for a moment: the device was in range and the adapter had room.
        var hasSeenLink = false
    }

    struct Timer: Equatable {
        var due: Duration
        let ticket: Int
    }

    var adapters: [BluetoothAddress: Adapter] = [:]
    var devices: [String: Device] = [:]
    var queue = ConnectQueue()
    var random: SplitMix64
    /// The requested wake-ups that are still to come.
    var wakes: Set<Duration> = []
    let policy: Policy
    /// The adapters that scan for connectionless devices; `nil` for all.
    private var listening: Set<BluetoothAddress>?
    /// True during a search for new peripherals, in which hearing none need not be an adapter's fault.
    var isSeeking = false

    /// Creates a supervisor.
    ///
    /// - Parameters:
    ///   - devices: The slugs of all devices.
    ///   - pinned: The only adapter that a device may use, for devices that have one.
    ///   - held: The devices that a user disconnected.
    ///   - listening: The adapters that scan for connectionless devices; `nil` for all.
    ///   - policy: The timeouts and pauses.
    ///   - seed: The seed of the jitter.
    public init(
        devices: [String],
        pinned: [String: BluetoothAddress] = [:],
        held: Set<String> = [],
        listening: Set<BluetoothAddress>? = [],
        policy: Policy = .init(),
        seed: UInt64
    ) {
        self.policy = policy
        self.listening = listening
        random = SplitMix64(seed: seed)
        for name in devices { enrol(name, pinned: pinned[name], isHeld: held.contains(name)) }
    }

    /// Returns the state of one device's link.
    public func state(of device: String) -> LinkState? {
        devices[device]?.link.state
    }

    /// True if the adapter should scan for connectionless devices.
    func listens(on address: BluetoothAddress) -> Bool {
        isListenedTo(address) && adapters[address]?.passiveScan.isReliable == false
    }

    /// True if the adapter is configured to scan for connectionless devices.
    func isListenedTo(_ address: BluetoothAddress) -> Bool { listening?.contains(address) ?? true }

    /// Applies one event and returns the resulting effects, in order.
    public mutating func handle(_ event: Event, now: Duration) -> [Effect] {
        var effects: [Effect] = []
        apply(event, now: now, into: &effects)
        plan(now: now, into: &effects)
        return effects
    }

    private mutating func apply(_ event: Event, now: Duration, into effects: inout [Effect]) {
        switch event {
        case .adapter(let address, let isPowered, let isDiscovering):
            adapterChanged(address, isPowered: isPowered, now: now, into: &effects)
            adapters[address]?.discovery.reported(isDiscovering: isDiscovering, now: now)
        case .adapterRemoved(let address):
            adapterStopped(address, .adapterLost, "the adapter \(address) is gone", now: now, into: &effects)
        case .listening(let adapters):
            listening = adapters
        case .seeking(let isSeeking):
            self.isSeeking = isSeeking
        case .monitoring(let address, let isMonitoring):
            addAdapter(address)
            adapters[address]?.passiveScan.reported(isActive: isMonitoring, now: now)
        case .unavailable(let detail):
            unavailable(detail, now: now, into: &effects)
        case .sighted(let device, let address, let sighting):
            sighted(device, on: address, sighting, now: now, into: &effects)
        case .forgotten(let device, let address):
            forgotten(device, on: address, now: now, into: &effects)
        case .dropped(let device, let address):
            dropped(device, on: address, now: now, into: &effects)
        case .heard(let address):
            adapters[address]?.ladder.heard(now: now)
        case .otherLinks(let address, let count):
            addAdapter(address)
            adapters[address]?.otherLinks = count
        case .link(let device, let event):
            guard devices[device]?.isLeaving != true || event != .release else { return }
            send(event, to: device, now: now, into: &effects)
        case .enrolled(let device, let pinned, let isHeld):
            enrol(device, pinned: pinned, isHeld: isHeld)
        case .dismissed(let device):
            devices[device]?.isLeaving = true
            send(.hold, to: device, now: now, into: &effects)
        case .discovery(let address, let ticket, let answer):
            discoveryAnswered(address, ticket: ticket, answer, now: now)
        case .powered(let address, let isOn):
            guard adapters[address]?.powerOnDue != nil else { return }
            adapters[address]?.powerOnDue = isOn ? nil : now + .seconds(5)
        case .wake(let time):
            wakes.remove(time)
        }
    }
}
