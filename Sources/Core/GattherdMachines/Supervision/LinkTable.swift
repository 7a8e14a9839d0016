import GattherdGATT
import GattherdModel

/// The adapters and devices of a supervisor, and the decisions that need both.
///
/// Changes have no effects beyond the table; the machine derives effects from it.
struct LinkTable: Sendable {
    typealias Sighting = SupervisorMachine.Sighting

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

        /// True unless a person, a removal or another gateway's lease keeps the device away.
        var mayConnect: Bool { link.state != .held && !isLeaving && link.withdrawal == nil }

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

    let recovery: RecoveryLadder.Policy
    /// The minimum duration of a link on a full adapter before it makes room; `nil` for no limit.
    let rotation: Duration?
    /// True if each device has a lease, which decides which gateway connects it.
    let hasLeases: Bool
    /// The adapters that scan for connectionless devices; `nil` for all.
    var listening: Set<BluetoothAddress>?
    /// True during a search for new peripherals, in which hearing none need not be an adapter's fault.
    var isSeeking = false
    var adapters: [BluetoothAddress: Adapter] = [:]
    var devices: [String: Device] = [:]
    var queue = ConnectQueue()

    /// - Parameters:
    ///   - policy: The timeouts and pauses.
    ///   - listening: The adapters that scan for connectionless devices; `nil` for all.
    init(_ policy: SupervisorMachine.Policy, listening: Set<BluetoothAddress>?) {
        (recovery, rotation, hasLeases) = (policy.recovery, policy.rotation, policy.link.needsAdmission)
        self.listening = listening
    }

    /// Creates the adapter's state if needed; other facts may arrive before the adapter itself.
    mutating func addAdapter(_ address: BluetoothAddress) {
        guard adapters[address] == nil else { return }
        let ladder = RecoveryLadder(policy: recovery)
        adapters[address] = Adapter(ladder: ladder, report: AdapterReport(address))
    }

    /// Clears the links of an adapter that is off.
    mutating func disconnect(on address: BluetoothAddress) {
        for name in devices.keys { devices[name]?.sightings[address]?.isConnected = false }
    }

    // MARK: - Links

    /// Returns the number of links up on the adapter, as reported by BlueZ or by the link machines.
    func links(on address: BluetoothAddress) -> Int {
        let ours = devices.values.count { device in
            device.sightings[address]?.isConnected == true
                || device.adapter == address && device.link.state.holdsLink
        }
        return ours + (adapters[address]?.otherLinks ?? 0)
    }

    /// True if the adapter holds as many links as its limit.
    func isFull(_ address: BluetoothAddress) -> Bool {
        guard let adapter = adapters[address], adapter.isPowered, let limit = adapter.slots.limit else { return false }
        return links(on: address) >= limit
    }

    /// Returns the devices that wait for a link and whose only usable adapter is this full one.
    func waiting(on address: BluetoothAddress) -> [String] {
        guard isFull(address) else { return [] }
        let others = adapters.filter { $0.key != address && $0.value.isPowered }.keys
        return devices.keys.sorted().filter { name in
            guard let device = devices[name], device.link.state.wantsSighting, !device.isLeaving else { return false }
            guard device.link.withdrawal == nil else { return false }
            return mayUse(address, name) && !others.contains { mayUse($0, name) && !isFull($0) }
        }
    }

    func hasRoom(_ address: BluetoothAddress, now: Duration) -> Bool {
        guard let adapter = adapters[address], adapter.isPowered, adapter.powerOnDue == nil else { return false }
        let (links, attempts) = (links(on: address), queue.attempts(on: address))
        return adapter.slots.hasRoom(links: links, attempts: attempts, now: now)
    }

    /// The adapter's ready links and the time each became ready.
    func readyLinks(on address: BluetoothAddress) -> [String: Duration] {
        devices.filter { $0.value.adapter == address && $0.value.link.state == .ready }.compactMapValues(
            \.link.stability.readySince
        )
    }

    /// True while a link of the adapter may work; links that proved dead do not count, even if BlueZ still shows
    /// them.
    func hasWorkingLinks(on address: BluetoothAddress) -> Bool {
        let dead = devices.values.count { device in
            device.deadLink?.adapter == address && device.sightings[address]?.isConnected == true
        }
        return links(on: address) > dead
    }

    // MARK: - Sightings

    /// True while BlueZ holds a link on an adapter not yet reported as powered: that link will be used.
    func isLinkedElsewhere(_ name: String) -> Bool {
        devices[name]?.sightings.contains { $0.value.isConnected && adapters[$0.key]?.isPowered != true } ?? false
    }

    /// Returns the device's sightings by powered adapters that it may use.
    func usableSightings(of name: String) -> [BluetoothAddress: Sighting] {
        devices[name]?.sightings.filter { adapters[$0.key]?.isPowered == true } ?? [:]
    }

    func mayUse(_ address: BluetoothAddress, _ name: String) -> Bool {
        devices[name]?.pinned.map { $0 == address } ?? true
    }

    /// The adapter on which the device should connect now; `nil` if all that know it are full.
    func bestAdapter(for name: String, now: Duration) -> BluetoothAddress? {
        guard !isBeingCompared(name, now: now) else { return nil }
        let candidates = usableSightings(of: name).filter { address, _ in
            adapters[address]?.rotation.holdsBack(name, now: now) != true
        }.map { address, sighting in
            AdapterCandidate(
                address: address,
                isConnected: sighting.isConnected,
                hasRoom: hasRoom(address, now: now),
                rssi: sighting.rssi,
                failures: devices[name]?.failures[address] ?? 0,
                load: links(on: address) + queue.attempts(on: address)
            )
        }
        return AdapterCandidate.best(of: candidates)?.address
    }

    /// The time since which the device has waited for a slot of a full adapter.
    func waitingSince(_ name: String) -> Duration? {
        adapters.values.compactMap { $0.rotation.waitingSince(name) }.min()
    }

    func isBeingCompared(_ name: String, now: Duration) -> Bool {
        guard let device = devices[name], let end = device.comparedAt, now < end else { return false }
        return adapters.keys.contains { device.sightings[$0] == nil && mayUse($0, name) && hasRoom($0, now: now) }
    }
}

extension LinkMachine {
    /// True while an attempt, a link or its end is bound to one adapter.
    var isBound: Bool { isUp || ending != nil || state == .disconnecting }

    /// True while only time keeps the link from requesting a turn.
    var isPausing: Bool { state == .backingOff && ending == nil && !isQueued }
}

extension LinkState {
    /// True while BlueZ holds a link for the device.
    var holdsLink: Bool {
        switch self {
        case .discovering, .preparing, .ready, .disconnecting: true
        case .waiting, .connecting, .disconnected, .backingOff, .held, .failed: false
        }
    }

    /// True while discovery would help, if no adapter knows the device.
    var wantsSighting: Bool {
        switch self {
        case .waiting, .disconnected, .backingOff: true
        case .connecting, .discovering, .preparing, .ready, .disconnecting, .held, .failed: false
        }
    }
}
