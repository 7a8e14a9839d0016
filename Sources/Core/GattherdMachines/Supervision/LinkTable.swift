import GattherdGATT
import GattherdModel

/// The adapters and devices of a supervisor, and the decisions that need both.
///
/// Changes have no effects beyond the table; the machine derives effects from it.
struct LinkTable: Sendable {
    typealias Sighting = SupervisorMachine.Sighting

    let recovery: RecoveryLadder.Policy
    /// The minimum duration of a link on a full adapter before it makes room; `nil` for no limit.
    let rotation: Duration?
    /// True if each device has a lease, which decides which gateway connects it.
    let hasLeases: Bool
    /// The adapters that scan for connectionless devices; `nil` for all.
    var listening: Set<BluetoothAddress>?
    /// True during a search for new peripherals, in which hearing none need not be an adapter's fault.
    var isSeeking = false
    var adapters: [BluetoothAddress: SupervisedAdapter] = [:]
    var devices: [String: SupervisedLink] = [:]
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
        adapters[address] = SupervisedAdapter(ladder: ladder, report: AdapterReport(address))
    }

    /// Clears the links of an adapter that is off.
    mutating func disconnect(on address: BluetoothAddress) {
        for name in devices.keys { devices[name]?.disconnected(on: address) }
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

    /// Returns the devices with a ready link on another adapter.
    func readyElsewhere(than address: BluetoothAddress) -> Set<String> {
        Set(devices.filter { $0.value.link.state == .ready && $0.value.adapter != address }.keys)
    }

    /// Returns the devices for which another adapter has freed a slot.
    func invitedElsewhere(than address: BluetoothAddress, at now: Duration) -> Set<String> {
        let others = adapters.filter { $0.key != address && $0.value.isPowered }.values
        return others.reduce(into: []) { $0.formUnion($1.rotation.invited(at: now)) }
    }

    /// The adapters, that with the oldest ready link first.
    var adaptersByOldestLink: [BluetoothAddress] {
        let ages = adapters.keys.map { address in
            (oldest: readyLinks(on: address).values.min() ?? .seconds(Int64.max), address: address)
        }
        return ages.sorted { ($0.oldest, $0.address) < ($1.oldest, $1.address) }.map(\.address)
    }

    func hasRoom(_ address: BluetoothAddress, at now: Duration) -> Bool {
        guard let adapter = adapters[address], adapter.isUsable else { return false }
        let (links, attempts) = (links(on: address), queue.attempts(on: address))
        return adapter.slots.hasRoom(links: links, attempts: attempts, at: now)
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
    func bestAdapter(for name: String, at now: Duration) -> BluetoothAddress? {
        guard !isBeingCompared(name, at: now) else { return nil }
        let candidates = usableSightings(of: name).filter { address, _ in
            adapters[address]?.rotation.holdsBack(name, at: now) != true
        }.map { address, sighting in
            AdapterCandidate(
                address: address,
                isConnected: sighting.isConnected,
                hasRoom: hasRoom(address, at: now),
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

    func isBeingCompared(_ name: String, at now: Duration) -> Bool {
        guard let device = devices[name], let end = device.comparedAt, now < end else { return false }
        return adapters.keys.contains { device.sightings[$0] == nil && mayUse($0, name) && hasRoom($0, at: now) }
    }
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
