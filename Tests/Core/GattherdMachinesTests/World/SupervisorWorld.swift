import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdMachines

/// A herd machine and the world around it in virtual time: BlueZ, its adapters and peripherals, and the runner that
/// carries out what the machine asks for.
///
/// After every event the rules of `SupervisorWorld+Rules.swift` are checked; what breaks one is kept in ``problems``.
struct SupervisorWorld {
    struct Adapter {
        var isPresent = true
        var isPowered = true
        /// Our discovery session.
        var isScanning = false
        var session = 0
        /// Attempts before this time wait: a controller makes one link at a time.
        var freeAt = Duration.zero
        var slots: Int?
        /// Links to peripherals that are no devices of ours.
        var otherLinks = 0
        /// It hears nothing.
        var isDeaf = false
        /// No scan can be started.
        var refusesScans = false
        var ailment: Ailment?
        /// The step that makes it well.
        var cure: RecoveryLadder.Step?
    }

    /// How attempts to connect on an adapter go wrong, all of them.
    enum Ailment {
        case busy
        case hangs
        case refuses
    }

    struct Peripheral {
        var isInRange = true
        /// The adapter that holds its link.
        var link: BluetoothAddress? {
            didSet { if link != oldValue { linkNumber += 1 } }
        }
        var linkNumber = 0
        /// The adapter of a link that the kernel still has after a crash of bluetoothd, and that carries nothing.
        var ghost: BluetoothAddress?
        /// The kernel keeps that link for the next bluetoothd.
        var outlivesCrash = false
        /// BlueZ does not forget it.
        var isTrusted = false
        var trouble: Trouble?
        /// In dBm, by adapter.
        var rssi: [BluetoothAddress: Int] = [:]
        /// When BlueZ last heard it, by adapter, while BlueZ knows it.
        var objects: [BluetoothAddress: Duration] = [:]
    }

    /// What goes wrong with one peripheral, until it is taken away.
    enum Trouble: Hashable, CaseIterable {
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
    /// How likely an attempt or a session fails.
    var failureRate = 0.0
    var latency = Duration.milliseconds(200)

    // What the machine has asked for.
    var attempts: [String: Attempt] = [:]
    var sessions: [String: Int] = [:]
    var remedies: [RecoveryLadder.Remedy] = []
    var reports: [BluetoothAddress: AdapterReport] = [:]
    var readyCount: [String: Int] = [:]
    var connectCount: [String: Int] = [:]
    var changes: [String: [LinkChange]] = [:]

    // What the rules need to know.
    var held: Set<String>
    /// Those that the configuration does not have, and of them those that the machine has let go of.
    var dismissed: Set<String> = []
    var left: Set<String> = []
    var toldPowered: Set<BluetoothAddress> = []
    var readySessions: Set<String> = []
    var forgiven: Set<String> = []
    var readySince: [String: Duration] = [:]
    var cycling: Set<BluetoothAddress> = []
    var problems: [String] = []
    /// The last events, for people; written down only when asked for.
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

    /// Lets virtual time pass until `end`.
    mutating func run(until end: Duration) {
        while let first = agenda.first, first.due <= end {
            agenda.removeFirst()
            now = first.due
            first.action(&self)
        }
        now = max(now, end)
    }

    mutating func run(for duration: Duration) { run(until: now + duration) }

    /// Runs until `condition` holds, at most for `limit`; gives the time that it took, `nil` when it never held.
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

    mutating func tell(_ event: SupervisorMachine.Event) {
        note(event)
        for effect in machine.handle(event, now: now) { perform(effect) }
        checkRules(after: event)
    }

    mutating func answer(_ name: String, after delay: Duration, _ event: LinkMachine.Event) {
        after(delay) { $0.tell(.link(device: name, event)) }
    }

    func state(_ name: String) -> LinkState? { machine.state(of: name) }

    /// True when every device is where a person wants it.
    var isSettled: Bool {
        names.allSatisfy { name in
            dismissed.contains(name) ? left.contains(name) : state(name) == (held.contains(name) ? .held : .ready)
        }
    }

    private mutating func perform(_ effect: SupervisorMachine.Effect) {
        switch effect {
        case .discovery(let address, let effect): perform(effect, on: address)
        case .remedy(_, let remedy): remedies.append(remedy)
        case .doubt: break
        case .renewSession: after(.milliseconds(1)) { $0.renewSession() }
        case .powerCycle(let address): powerCycle(address)
        case .powerOn(let address):
            checkPowerOn(address)
            after(.milliseconds(100)) { $0.finishCycle(address) }
        case .left(let name):
            left.insert(name)
            if !dismissed.contains(name) { enrol(name) }
        case .report(let report): reports[report.address] = report
        case .wake(let time): after(time - now) { $0.tell(.wake(at: time)) }
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

    // MARK: - For people

    mutating func note(_ what: Any) {
        if history.count > 200 { history.removeFirst(100) }
        history.append((now, what))
    }

    /// The problems with what led to them.
    var story: String {
        let events = history.suffix(60).map { "\($0.time / .seconds(1)) \($0.what)" }
        return (problems.prefix(5) + ["---"] + events).joined(separator: "\n")
    }
}
