import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdMachines

/// A supervisor machine and its environment in virtual time: BlueZ, adapters, peripherals, and the effects'
/// execution.
///
/// The rules of `SupervisorWorld+Rules.swift` are checked after every event; violations are kept in ``problems``.
struct SupervisorWorld {
    struct Adapter {
        var isPresent = true
        var isPowered = true
        /// True while our discovery session runs.
        var isScanning = false
        var session = 0
        /// The end of the current attempt; later attempts wait, because a controller makes one link at a time.
        var freeAt = Duration.zero
        var slots: Int?
        /// Links to peripherals that are not enrolled.
        var otherLinks = 0
        /// True while the adapter hears nothing.
        var hearsNothing = false
        /// True while discovery cannot be started.
        var refusesScans = false
        var ailment: Ailment?
        /// The step that cures the ailment.
        var cure: RecoveryLadder.Step?
    }

    /// The failure of all connection attempts on an adapter.
    enum Ailment {
        case busy
        case hangs
        case refuses
    }

    struct Peripheral {
        var isInRange = true
        /// The adapter that holds the peripheral's link.
        var link: BluetoothAddress? {
            didSet { if link != oldValue { linkNumber += 1 } }
        }
        var linkNumber = 0
        /// The adapter of a link that the kernel still holds after a crash of bluetoothd, and that carries nothing.
        var ghost: BluetoothAddress?
        /// True if the kernel keeps that link for the next bluetoothd.
        var outlivesCrash = false
        /// True if BlueZ keeps the peripheral's object.
        var isTrusted = false
        var fault: PeripheralFault?
        /// The signal strength in dBm, by adapter.
        var rssi: [BluetoothAddress: Int] = [:]
        /// The time at which BlueZ last heard the peripheral, by adapter, while BlueZ knows it.
        var objects: [BluetoothAddress: Duration] = [:]
    }

    /// A lasting fault of one peripheral.
    enum PeripheralFault: Hashable, CaseIterable {
        case abortsConnect, neverConnects, connectUnanswered
        case neverResolves, lacksOurServices, refusesSubscription, sessionUnanswered, endsSubscriptions, hasStaleObjects
        case disconnectUnanswered
    }

    struct Attempt {
        let id: Int
        let adapter: BluetoothAddress
        let ticket: Int
        let since: Duration
    }

    var machine: SupervisorMachine
    let names: [String]
    let addresses: [BluetoothAddress]
    var now = Duration.zero
    var dice: SplitMix64
    var adapters: [BluetoothAddress: Adapter] = [:]
    var peripherals: [String: Peripheral] = [:]
    var isDaemonUp = true
    /// The probability that an attempt or a session fails.
    var failureRate = 0.0
    var latency = Duration.milliseconds(200)

    // The machine's requests.
    var attempts: [String: Attempt] = [:]
    var sessions: [String: Int] = [:]
    var remedies: [RecoveryLadder.Remedy] = []
    var reports: [BluetoothAddress: AdapterReport] = [:]
    var readyCount: [String: Int] = [:]
    var connectCount: [String: Int] = [:]
    var changes: [String: [LinkChange]] = [:]

    // The state that the rules need.
    var held: Set<String>
    /// Devices missing from the configuration, and those of them that the machine has released.
    var dismissed: Set<String> = []
    var left: Set<String> = []
    var toldPowered: Set<BluetoothAddress> = []
    var readySessions: Set<String> = []
    var forgiven: Set<String> = []
    var readySince: [String: Duration] = [:]
    var cycling: Set<BluetoothAddress> = []
    var problems: [String] = []
    /// The last events, for display; recorded only on request.
    private var history: [(time: Duration, what: Any)] = []

    private var agenda: [(due: Duration, order: Int, action: (inout SupervisorWorld) -> Void)] = []
    private var nextNumber = 0

    init(
        devices count: Int,
        adapters adapterCount: Int = 1,
        seed: UInt64,
        held: Set<String> = [],
        pinned: [String: Int] = [:],
        policy: SupervisorMachine.Policy = .init()
    ) throws {
        names = (1...count).map { "d\($0)" }
        addresses = try (1...adapterCount).map { try #require(BluetoothAddress("00:00:00:00:00:0\($0)")) }
        let pins = pinned.mapValues { [addresses] in addresses[$0] }
        machine = SupervisorMachine(devices: names, pinned: pins, held: held, policy: policy, seed: seed)
        dice = SplitMix64(seed: seed &+ 1)
        self.held = held
        for address in addresses { adapters[address] = Adapter() }
        for name in names { peripherals[name] = Peripheral() }
        after(.zero) { $0.expireObjects() }
    }

    /// The only adapter, or the first.
    var adapter: BluetoothAddress { addresses[0] }

    // MARK: - Time

    mutating func newNumber() -> Int {
        nextNumber += 1
        return nextNumber
    }

    mutating func after(_ delay: Duration, _ action: @escaping (inout SupervisorWorld) -> Void) {
        let entry = (now + delay, newNumber(), action)
        let place = agenda.lastIndex { $0.due <= entry.0 }.map { $0 + 1 } ?? 0
        agenda.insert(entry, at: place)
    }

    /// Advances virtual time to `end`.
    mutating func run(until end: Duration) {
        while let first = agenda.first, first.due <= end {
            agenda.removeFirst()
            now = first.due
            first.action(&self)
        }
        now = max(now, end)
    }

    mutating func run(for duration: Duration) { run(until: now + duration) }

    /// Runs until `condition` holds, at most for `limit`; returns the elapsed time, or `nil` if it never held.
    mutating func run(
        for limit: Duration,
        until condition: (SupervisorWorld) -> Bool
    ) -> Duration? {
        let start = now
        while !condition(self) {
            guard let first = agenda.first, first.due <= start + limit else { return nil }
            run(until: first.due)
        }
        return now - start
    }

    // MARK: - The machine

    mutating func send(_ event: SupervisorMachine.Event) {
        record(event)
        for effect in machine.handle(event, at: now) { perform(effect) }
        checkRules(after: event)
    }

    mutating func answer(_ name: String, after delay: Duration, _ event: LinkMachine.Event) {
        after(delay) { $0.send(.link(device: name, event)) }
    }

    func state(_ name: String) -> LinkState? { machine.state(of: name) }

    /// True if every device is in the state that its user wants.
    var isIdle: Bool {
        names.allSatisfy { name in
            dismissed.contains(name) ? left.contains(name) : state(name) == (held.contains(name) ? .held : .ready)
        }
    }

    private mutating func perform(_ effect: SupervisorMachine.Effect) {
        switch effect {
        case .discovery(let address, let effect): perform(effect, on: address)
        case .remedy(_, let remedy): remedies.append(remedy)
        case .probe: break
        case .reconnectToBus: after(.milliseconds(1)) { $0.reconnectToBus() }
        case .powerCycle(let address): powerCycle(address)
        case .powerOn(let address):
            checkPowerOn(address)
            after(.milliseconds(100)) { $0.finishCycle(address) }
        case .left(let name):
            left.insert(name)
            if !dismissed.contains(name) { enrol(name) }
        case .report(let report): reports[report.address] = report
        case .wake(let time): after(time - now) { $0.send(.wake(at: time)) }
        case .link(let name, let address, let effect): perform(effect, name, on: address)
        }
    }

    private mutating func perform(_ effect: LinkMachine.Effect, _ name: String, on address: BluetoothAddress?) {
        checkRules(before: effect, name, on: address)
        switch effect {
        case .connect(let ticket):
            connectCount[name, default: 0] += 1
            if let address { connect(name, on: address, ticket: ticket) }
        case .openSession(let ticket), .replaceSession(let ticket): openSession(name, ticket: ticket)
        case .closeSession: sessions[name] = nil
        case .disconnect(let ticket): disconnect(name, ticket: ticket)
        case .changed(let change):
            if change.to == .ready, !change.isWithinState { readyCount[name, default: 0] += 1 }
            changes[name, default: []].append(change)
        case .queue, .unqueue, .arm: break
        }
    }

    // MARK: - Output

    mutating func record(_ what: Any) {
        if history.count > 200 { history.removeFirst(100) }
        history.append((now, what))
    }

    /// The problems and the events that led to them.
    var story: String {
        let events = history.suffix(60).map { "\($0.time / .seconds(1)) \($0.what)" }
        return (problems.prefix(5) + ["---"] + events).joined(separator: "\n")
    }
}
