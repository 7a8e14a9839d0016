public import GattherdGATT
public import GattherdModel

/// All devices of the gateway: which link goes where, whose turn it is, when to scan, and what to do about an adapter
/// that does not work.
///
/// Pure: the monotonic time and the dice are handed in.
public struct SupervisorMachine: Sendable {
    public enum Event: Equatable, Sendable {
        /// `isDiscovering` is BlueZ's word, about any program's scan.
        case adapter(BluetoothAddress, isPowered: Bool, isDiscovering: Bool)
        case adapterRemoved(BluetoothAddress)
        /// Devices that are never connected are listened to on these adapters; `nil` for all.
        case listening(Set<BluetoothAddress>?)
        /// True from when peripherals are sought, on every adapter, that are no devices yet; false when they no longer are.
        case seeking(Bool)
        /// The adapter tells of advertisements without a scan of ours, or no longer.
        case monitoring(BluetoothAddress, Bool)
        /// bluetoothd or the bus is gone: nothing that was known is true any more.
        case unavailable(detail: String)
        case sighted(device: String, on: BluetoothAddress, Sighting)
        case forgotten(device: String, on: BluetoothAddress)
        case dropped(device: String, on: BluetoothAddress)
        /// The adapter has heard any peripheral; need not be told more than once in a second.
        case heard(BluetoothAddress)
        /// How many links of the adapter are to peripherals that are no devices of ours.
        case otherLinks(BluetoothAddress, Int)
        /// What the link machine of one device must hear.
        case link(device: String, LinkMachine.Event)
        /// A device is ours from now on; one of that name must have ``Effect/left(device:)`` before.
        case enrolled(device: String, pinned: BluetoothAddress?, isHeld: Bool)
        /// A device is not ours any more: its link is ended, ``Effect/left(device:)`` follows.
        case dismissed(device: String)
        /// The answer to ``Effect/discovery(_:_:)``.
        case discovery(BluetoothAddress, ticket: Int, DiscoveryMachine.Answer)
        /// The answer to ``Effect/powerCycle(_:)`` and ``Effect/powerOn(_:)``.
        case powered(BluetoothAddress, isOn: Bool)
        /// The time of ``Effect/wake(at:)`` has come.
        case wake(at: Duration)
    }

    /// What BlueZ says of a peripheral on one adapter.
    public struct Sighting: Hashable, Sendable {
        public var isConnected: Bool
        /// True unless BlueZ shows a link and has not found services over it.
        public var isResolved: Bool
        /// In dBm; present only while a scan sees it.
        public var rssi: Int?
        /// True when it has advertised just now.
        public var isHeard: Bool

        public init(isConnected: Bool, isResolved: Bool = true, rssi: Int? = nil, isHeard: Bool = false) {
            self.isConnected = isConnected
            self.isResolved = isResolved
            self.rssi = rssi
            self.isHeard = isHeard
        }
    }

    public enum Effect: Equatable, Sendable {
        /// What the link machine of one device asks for, on the adapter that was chosen for it.
        case link(device: String, on: BluetoothAddress?, LinkMachine.Effect)
        case discovery(BluetoothAddress, DiscoveryMachine.Effect)
        /// Something is done about an adapter that does not work; for people.
        case remedy(BluetoothAddress, RecoveryLadder.Remedy)
        /// Leave the bus and come back.
        case renewSession
        /// Switch the adapter off and on.
        case powerCycle(BluetoothAddress)
        /// Switch on what a power cycle left off.
        case powerOn(BluetoothAddress)
        /// A device whose link counts as up was heard advertising.
        case doubt(device: String)
        /// Nothing of a dismissed device is under way any more.
        case left(device: String)
        /// The adapter's numbers are others now.
        case report(AdapterReport)
        /// Send ``Event/wake(at:)`` with the same time, at that monotonic time.
        case wake(at: Duration)
    }

    /// How patient the herd is.
    public struct Policy: Equatable, Sendable {
        public var link: LinkMachine.Policy
        public var recovery: RecoveryLadder.Policy
        /// How long a link of a full adapter lasts at least before it makes room for a device that waits; `nil`: for ever.
        public var rotation: Duration?

        public init(link: LinkMachine.Policy = .init(), recovery: RecoveryLadder.Policy = .init()) {
            self.link = link
            self.recovery = recovery
        }
    }

    struct Adapter: Sendable {
        /// False also while it is not there: what was learned of it is kept.
        var isPowered = false
        var otherLinks = 0
        var slots = SlotBook()
        var rotation = Rotation()
        var discovery = DiscoveryMachine()
        /// Advertisements that come without a scan of ours.
        var passiveScan = PassiveScan()
        /// Since when it would help to see some device there; `nil` when it would not.
        var lookingSince: Duration?
        var ladder: RecoveryLadder
        /// When it is switched on (again), while a power cycle of ours is not over.
        var powerOnDue: Duration?
        var report: AdapterReport
    }

    struct Device: Sendable {
        var link: LinkMachine
        /// The only adapter that may be used.
        let pinned: BluetoothAddress?
        /// Where BlueZ knows it.
        var sightings: [BluetoothAddress: Sighting] = [:]
        /// The adapter of the attempt or link under way.
        var adapter: BluetoothAddress?
        /// Attempts that failed in a row, by adapter.
        var failures: [BluetoothAddress: Int] = [:]
        var lastHeard: Duration?
        /// Until then other adapters may hear it too, before one is chosen.
        var comparedAt: Duration?
        var attempt: Attempt?
        /// The adapter that refused the last attempt at once, perhaps because it was full.
        var refusedBy: BluetoothAddress?
        var timer: Timer?
        /// The last link, if it proved dead, until the next one is ready.
        var deadLink: DeadLink?
        /// Dismissed, and gone as soon as nothing is being ended any more.
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
        /// True when BlueZ showed a link, if for a moment: then somebody was there and the adapter had room.
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
    /// The wakes that were asked for and have not come.
    var wakes: Set<Duration> = []
    let policy: Policy
    /// Where devices that are never connected are listened to; `nil` for every adapter.
    private var listening: Set<BluetoothAddress>?
    /// True while peripherals are looked for that are no devices yet; that none is heard need be no fault of an adapter.
    var isSeeking = false

    /// - Parameters:
    ///   - devices: The slugs of all devices.
    ///   - pinned: The only adapter that a device may use, for those that have one.
    ///   - held: Those that a person disconnected.
    ///   - listening: The adapters on which devices that are never connected are listened to; `nil` for all.
    ///   - policy: How patient to be.
    ///   - seed: For the jitter.
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

    /// The state of one device's link.
    public func state(of device: String) -> LinkState? {
        devices[device]?.link.state
    }

    /// True when a scan of the adapter is wanted for the sake of those who only advertise.
    func listens(on address: BluetoothAddress) -> Bool {
        isListenedTo(address) && adapters[address]?.passiveScan.isReliable == false
    }

    /// True when devices that only advertise are listened to there.
    func isListenedTo(_ address: BluetoothAddress) -> Bool { listening?.contains(address) ?? true }

    /// Applies one event and says what must be done, in order.
    public mutating func handle(_ event: Event, now: Duration) -> [Effect] {
        var effects: [Effect] = []
        apply(event, now: now, into: &effects)
        settle(now: now, into: &effects)
        return effects
    }

    private mutating func apply(_ event: Event, now: Duration, into effects: inout [Effect]) {
        switch event {
        case .adapter(let address, let isPowered, let isDiscovering):
            adapterChanged(address, isPowered: isPowered, now: now, into: &effects)
            adapters[address]?.discovery.reported(isDiscovering: isDiscovering, now: now)
        case .adapterRemoved(let address):
            lose(address, .adapterLost, "the adapter \(address) is gone", now: now, into: &effects)
        case .listening(let adapters):
            listening = adapters
        case .seeking(let isSeeking):
            self.isSeeking = isSeeking
        case .monitoring(let address, let isMonitoring):
            know(address)
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
            know(address)
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
