public import GattherdGATT
public import GattherdModel

/// All devices of the gateway: which link goes where, whose turn it is, and when to scan.
///
/// Pure: the monotonic time and the dice are handed in.
public struct HerdMachine: Sendable {
    public enum Event: Equatable, Sendable {
        case adapter(BluetoothAddress, isPowered: Bool)
        case adapterRemoved(BluetoothAddress)
        /// bluetoothd or the bus is gone: nothing that was known is true any more.
        case unavailable(detail: String)
        case sighted(device: String, on: BluetoothAddress, Sighting)
        case forgotten(device: String, on: BluetoothAddress)
        case dropped(device: String, on: BluetoothAddress)
        /// What the link machine of one device must hear.
        case link(device: String, LinkMachine.Event)
        /// The next turn to connect on an adapter may have come.
        case turn(BluetoothAddress)
        /// The scan that was asked for is not running; asked for again if still needed.
        case discoveryFailed(BluetoothAddress)
    }

    /// What BlueZ says of a peripheral on one adapter.
    public struct Sighting: Equatable, Sendable {
        public var isConnected: Bool
        /// In dBm; present only while a scan sees it.
        public var rssi: Int?

        public init(isConnected: Bool, rssi: Int? = nil) {
            self.isConnected = isConnected
            self.rssi = rssi
        }
    }

    public enum Effect: Equatable, Sendable {
        /// What the link machine of one device asks for, on the adapter that was chosen for it.
        case link(device: String, on: BluetoothAddress?, LinkMachine.Effect)
        case startDiscovery(BluetoothAddress)
        case stopDiscovery(BluetoothAddress)
        /// Send ``Event/turn(_:)`` after this time.
        case armTurn(BluetoothAddress, after: Duration)
    }

    private struct Adapter: Sendable {
        var isPowered = false
        var isScanning = false
        var queue = ConnectQueue()
    }

    private struct Device: Sendable {
        var link: LinkMachine
        /// Where BlueZ knows it.
        var sightings: [BluetoothAddress: Sighting] = [:]
        /// The adapter of the attempt or link under way.
        var adapter: BluetoothAddress?
    }

    private var adapters: [BluetoothAddress: Adapter] = [:]
    private var devices: [String: Device] = [:]
    private let policy: LinkMachine.Policy
    private var random: SplitMix64

    /// - Parameters:
    ///   - devices: The slugs of all devices.
    ///   - held: Those that a person disconnected.
    ///   - policy: How patient links are.
    ///   - seed: For the jitter.
    public init(devices: [String], held: Set<String> = [], policy: LinkMachine.Policy = .init(), seed: UInt64) {
        self.policy = policy
        random = SplitMix64(seed: seed)
        for name in devices {
            self.devices[name] = Device(link: LinkMachine(policy: policy, isHeld: held.contains(name)))
        }
    }

    /// The state of one device's link.
    public func state(of device: String) -> LinkState? {
        devices[device]?.link.state
    }

    /// Applies one event and says what must be done, in order.
    public mutating func handle(_ event: Event, now: Duration) -> [Effect] {
        var effects: [Effect] = []
        apply(event, now: now, into: &effects)
        grantTurns(now: now, into: &effects)
        adjustDiscovery(into: &effects)
        return effects
    }

    private mutating func apply(_ event: Event, now: Duration, into effects: inout [Effect]) {
        switch event {
        case .adapter(let address, let isPowered):
            adapterChanged(address, isPowered: isPowered, now: now, into: &effects)
        case .adapterRemoved(let address):
            loseAdapter(address, .adapterLost, "the adapter \(address) is gone", now: now, into: &effects)
            adapters[address] = nil
        case .unavailable(let detail):
            unavailable(detail, now: now, into: &effects)
        case .sighted(let device, let address, let sighting):
            devices[device]?.sightings[address] = sighting
            announce(device, now: now, into: &effects)
        case .forgotten(let device, let address):
            forgotten(device, on: address, now: now, into: &effects)
        case .dropped(let device, let address):
            dropped(device, on: address, now: now, into: &effects)
        case .link(let device, let event):
            send(event, to: device, now: now, into: &effects)
        case .discoveryFailed(let address):
            adapters[address]?.isScanning = false
        case .turn:
            break
        }
    }

    private mutating func adapterChanged(
        _ address: BluetoothAddress,
        isPowered: Bool,
        now: Duration,
        into effects: inout [Effect]
    ) {
        let wasPowered = adapters[address]?.isPowered ?? false
        adapters[address, default: Adapter()].isPowered = isPowered
        if wasPowered && !isPowered {
            loseAdapter(address, .adapterPoweredOff, "the adapter \(address) is off", now: now, into: &effects)
        }
        if isPowered && !wasPowered {
            for device in devices.keys.sorted() { announce(device, now: now, into: &effects) }
        }
    }

    /// Ends what runs on the adapter; devices that another adapter sees go on there.
    private mutating func loseAdapter(
        _ address: BluetoothAddress,
        _ reason: LinkReason,
        _ detail: String,
        now: Duration,
        into effects: inout [Effect]
    ) {
        adapters[address]?.isPowered = false
        adapters[address]?.isScanning = false
        for (name, device) in devices.sorted(by: { $0.key < $1.key }) {
            if reason == .adapterLost { devices[name]?.sightings[address] = nil }
            devices[name]?.sightings[address]?.isConnected = false
            let isAlone = !adapters.contains { $0.key != address && $0.value.isPowered }
            guard device.adapter == address || isAlone else { continue }
            send(.gone(reason, detail: detail), to: name, now: now, into: &effects)
            announce(name, now: now, into: &effects)
        }
    }

    private mutating func unavailable(_ detail: String, now: Duration, into effects: inout [Effect]) {
        adapters = [:]
        for name in devices.keys.sorted() {
            devices[name]?.sightings = [:]
            send(.gone(.daemonLost, detail: detail), to: name, now: now, into: &effects)
        }
    }

    private mutating func forgotten(
        _ name: String,
        on address: BluetoothAddress,
        now: Duration,
        into effects: inout [Effect]
    ) {
        guard let device = devices[name] else { return }
        devices[name]?.sightings[address] = nil
        guard device.adapter == nil || device.adapter == address else { return }
        send(.gone(.vanished, detail: "BlueZ has removed the peripheral"), to: name, now: now, into: &effects)
        announce(name, now: now, into: &effects)
    }

    private mutating func dropped(
        _ name: String,
        on address: BluetoothAddress,
        now: Duration,
        into effects: inout [Effect]
    ) {
        devices[name]?.sightings[address]?.isConnected = false
        guard devices[name]?.adapter == address else { return }
        send(.lost(.remote, detail: "the link dropped"), to: name, now: now, into: &effects)
    }

    /// Tells a link that its peripheral is there, if a usable adapter knows it.
    private mutating func announce(_ name: String, now: Duration, into effects: inout [Effect]) {
        guard let address = bestAdapter(for: name), let sighting = devices[name]?.sightings[address] else { return }
        send(.seen(isConnected: sighting.isConnected), to: name, now: now, into: &effects)
    }

    /// The adapter of a link that is up, else the one that hears the device best.
    private func bestAdapter(for name: String) -> BluetoothAddress? {
        guard let device = devices[name] else { return nil }
        let usable = device.sightings.filter { adapters[$0.key]?.isPowered == true }
        func rank(_ sighting: Sighting) -> Int { sighting.isConnected ? 1000 : sighting.rssi ?? -1000 }
        return usable.max { (rank($0.value), $1.key) < (rank($1.value), $0.key) }?.key
    }

    private mutating func send(
        _ event: LinkMachine.Event,
        to name: String,
        now: Duration,
        into effects: inout [Effect]
    ) {
        guard var device = devices[name] else { return }
        let asked = device.link.handle(event, now: now, using: &random)
        devices[name] = device
        for effect in asked {
            switch effect {
            case .queue: enqueue(name)
            case .unqueue: for address in adapters.keys { adapters[address]?.queue.remove(name) }
            default: effects.append(.link(device: name, on: adapter(of: name, for: effect), effect))
            }
        }
        if !device.link.state.usesAdapter { devices[name]?.adapter = nil }
    }

    private mutating func enqueue(_ name: String) {
        guard let address = bestAdapter(for: name) else { return }
        devices[name]?.adapter = address
        adapters[address]?.queue.add(name)
    }

    /// Chooses the adapter when a link begins, and keeps it until the link has ended.
    private mutating func adapter(of name: String, for effect: LinkMachine.Effect) -> BluetoothAddress? {
        if case .openSession = effect, devices[name]?.sightings.contains(where: { $0.value.isConnected }) == true {
            let best = bestAdapter(for: name)
            devices[name]?.adapter = best
        }
        return devices[name]?.adapter
    }

    private mutating func grantTurns(now: Duration, into effects: inout [Effect]) {
        for address in adapters.keys.sorted() where adapters[address]?.isPowered == true {
            while let device = adapters[address]?.queue.next(now: now) {
                send(.granted, to: device, now: now, into: &effects)
            }
            if let turn = adapters[address]?.queue.nextTurn(now: now) {
                effects.append(.armTurn(address, after: turn - now))
            }
        }
    }

    /// Scans while a wanted device has not been seen, and only then.
    private mutating func adjustDiscovery(into effects: inout [Effect]) {
        let isMissing = devices.contains { $0.value.link.state.wantsSighting && bestAdapter(for: $0.key) == nil }
        for address in adapters.keys.sorted() {
            guard let adapter = adapters[address], adapter.isPowered else { continue }
            if isMissing != adapter.isScanning {
                effects.append(isMissing ? .startDiscovery(address) : .stopDiscovery(address))
                adapters[address]?.isScanning = isMissing
            }
        }
    }
}

extension LinkState {
    /// True while an attempt or a link of ours is bound to one adapter, or about to be.
    var usesAdapter: Bool {
        switch self {
        case .waiting, .disconnected, .backingOff, .connecting, .discovering, .preparing, .ready, .disconnecting: true
        case .held, .failed: false
        }
    }

    /// True while a scan would help, if no adapter knows the device.
    var wantsSighting: Bool {
        switch self {
        case .waiting, .disconnected, .backingOff: true
        case .connecting, .discovering, .preparing, .ready, .disconnecting, .held, .failed: false
        }
    }
}
