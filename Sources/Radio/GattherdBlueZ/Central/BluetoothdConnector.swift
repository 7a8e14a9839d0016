import GattherdBluetooth
import GattherdDBus
import GattherdLog
import GattherdSync

/// The last published availability of bluetoothd; each change is published once.
struct Availability {
    /// The detail of the last `unavailable` event; `nil` while available.
    private var detail: String?
    /// True once `accessDenied` was published.
    private var isRefusalPublished = false

    mutating func becomeAvailable() -> CentralEvent {
        (detail, isRefusalPublished) = (nil, false)
        return .available
    }

    mutating func becomeUnavailable(_ detail: String) -> CentralEvent? {
        guard self.detail != detail else { return nil }
        self.detail = detail
        return .unavailable(detail: detail)
    }

    /// Returns the event of an error that denies this user access to bluetoothd.
    mutating func recordError(_ error: DBusError) -> CentralEvent? {
        guard BluetoothError(error, missing: .other).kind == .accessDenied, !isRefusalPublished else { return nil }
        isRefusalPublished = true
        return .accessDenied(detail: error.message)
    }
}

/// The connection to the bus, opened again when it is lost, and the arrivals of bluetoothd on it.
///
/// On the Bluetooth thread only.
final class BluetoothdConnector {
    private let address: DBusAddress
    private let parts: CentralParts
    private let loop: EventLoop
    private let limits: BlueZCentral.Limits
    private let log: Log
    private let router: SignalRouter
    private var availability = Availability()
    /// The requests to load the objects and to register monitors.
    private let refreshRequests: RefreshRequests
    private var isClosed = false
    /// True while this central leaves the bus on purpose; the loss is published already.
    private var isRenewing = false
    /// True from the request of a renewal until it begins.
    private var isRenewalRequested = false
    /// Called when the connection must be renewed.
    var requestRenewal: () -> Void = {}
    /// Registers the pairing agent; called before a new bluetoothd is used.
    var registerAgent: () -> Void = {}

    /// The requests to load the objects and to register monitors, for the current connection.
    private final class RefreshRequests {
        var continuation: AsyncStream<Void>.Continuation?

        func add() {
            continuation?.yield()
        }
    }

    init(_ parts: CentralParts, bus address: DBusAddress, on loop: EventLoop, limits: BlueZCentral.Limits, log: Log) {
        (self.parts, self.address, self.loop, self.limits, self.log) = (parts, address, loop, limits, log)
        let requests = RefreshRequests()
        refreshRequests = requests
        let router = SignalRouter(parts, on: loop, log: log) { requests.add() }
        self.router = router
        parts.objects.onChange = { [unowned router] changes in router.apply(changes) }
    }

    // MARK: - Life

    /// Opens the bus and keeps it open until ``close()``, or until the task is cancelled.
    func run() async {
        parts.client.onUnansweredCalls = { [weak self] in
            self?.renew(because: "bluetoothd left too many calls unanswered: the connection to it is renewed")
        }
        var pause = limits.retry.lowerBound
        while !isClosed, !Task.isCancelled {
            do throws(DBusError) {
                let bus = try await DBusConnection.open(address, on: loop, readDelay: limits.batchDelay)
                pause = limits.retry.lowerBound
                try await serve(bus)
            } catch {
                await disconnect()
                publish(availability.recordError(error))
                let question = error.isFromBus ? "" : "; is the message bus running?"
                if !isRenewing { becomeUnavailable(error.message + question) }
                isRenewing = false
            }
            guard !isClosed, !Task.isCancelled else { break }
            _ = await parts.waiters.sleep(for: pause)
            pause = min(pause * 2, limits.retry.upperBound)
        }
    }

    /// Disconnects as a client without sockets, and connects again as a new client.
    func renew() async {
        isRenewalRequested = false
        guard !isClosed, !isRenewing, let bus = parts.client.bus else { return }
        isRenewing = true
        becomeUnavailable("the connection to bluetoothd is renewed")
        await parts.prepareToLeave()
        await bus.close()
    }

    private func renew(because reason: StaticString) {
        guard !isRenewing, !isRenewalRequested, !isClosed else { return }
        isRenewalRequested = true
        log(.warning, reason)
        requestRenewal()
    }

    /// Wakes all that wait, and opens no other connection.
    func beginClosing() {
        isClosed = true
        parts.waiters.close()
    }

    /// Leaves the bus.
    func close() async {
        await parts.pairing.close()
        await parts.prepareToLeave()
        await disconnect()
        parts.events.finish()
    }

    /// Closes the connection: sockets first, then the bus.
    private func disconnect() async {
        let bus = parts.client.bus
        busEnded()
        await bus?.close()
    }

    private func busEnded() {
        parts.client.detach()
        parts.reset()
    }

    // MARK: - The bus

    /// Serves each bluetoothd until the bus is lost or the task is cancelled.
    private func serve(_ bus: DBusConnection) async throws(DBusError) {
        guard !isClosed else { return await bus.close() }
        let (requests, refresh) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        parts.client.attach(bus)
        refreshRequests.continuation = refresh
        handleMessages(of: bus)
        // The sockets close before bluetoothd learns that we have left, if we are the ones who leave.
        bus.onDisconnect { [self] in
            if parts.client.bus === bus { busEnded() }
            refresh.finish()
        }
        for rule in BlueZ.matchRules { try await bus.addMatch(rule) }
        try await findOwner(on: bus)
        parts.liveness.start { [weak self] in
            self?.renew(because: "bluetoothd does not answer: the connection to it is renewed")
        }
        defer { parts.liveness.stop() }
        for await _ in requests {
            await load()
            await parts.monitors.register()
        }
        guard !isClosed, !Task.isCancelled else { return }
        throw DBusError(name: DBusError.disconnectedName, message: "the bus at \(address) was lost")
    }

    private func findOwner(on bus: DBusConnection) async throws(DBusError) {
        do throws(DBusError) {
            try await bus.callOnLoop(
                "org.freedesktop.DBus",
                "/org/freedesktop/DBus",
                "org.freedesktop.DBus",
                "GetNameOwner",
                [.string(BlueZ.service)],
                timeout: limits.load,
                onReply: { [self] outcome in setOwner(try? outcome.get().first?.string) }
            )
        } catch  where error.name == "org.freedesktop.DBus.Error.NameHasNoOwner" {
            // A signal will report its arrival.
        }
    }

    private func handleMessages(of bus: DBusConnection) {
        bus.onSignal { [self] signal in
            if let owner = parts.client.owner, signal.isFrom(owner) {
                router.receive(signal)
            } else {
                followOwner(signal)
            }
        }
        bus.onOtherMessage { [parts] serial, sender in
            if sender == parts.client.owner { parts.sequencer.receiveOther(serial) }
        }
    }

    /// Handles the bus's signal that a name has another owner.
    private func followOwner(_ signal: borrowing DBusSignal) {
        guard signal.isSignal("org.freedesktop.DBus", "NameOwnerChanged"), signal.isFrom("org.freedesktop.DBus"),
            let names = try? signal.arguments().compactMap(\.string), names.count == 3, names[0] == BlueZ.service
        else { return }
        setOwner(names[2].isEmpty ? nil : names[2])
    }

    /// Handles a bluetoothd that arrived on the bus, left it, or was replaced.
    private func setOwner(_ owner: String?) {
        let previous = parts.client.owner
        guard owner != previous || owner == nil else { return }
        if previous != nil, owner != nil { becomeUnavailable("bluetoothd was replaced") }
        parts.reset()
        parts.client.setOwner(owner)
        guard owner == nil else { return refreshRequests.add() }
        becomeUnavailable(
            "bluetoothd is not on the bus at \(address); start it, for example with 'systemctl start bluetooth'"
        )
    }

    // MARK: - Objects

    /// Reads all objects; tries again until bluetoothd answers or leaves.
    private func load() async {
        var pause = limits.retry.lowerBound
        while let owner = parts.client.owner, !parts.objects.isLoaded, !parts.client.isLeaving, !isClosed,
            !Task.isCancelled
        {
            registerAgent()
            do throws(DBusError) {
                try await loadObjects(of: owner)
            } catch {
                guard parts.client.owner == owner, !isClosed else { continue }
                publish(availability.recordError(error))
                becomeUnavailable("bluetoothd did not list its objects: \(error.message) (\(error.name))")
                _ = await parts.waiters.sleep(for: pause)
                pause = min(pause * 2, limits.retry.upperBound)
            }
        }
    }

    private func loadObjects(of owner: String) async throws(DBusError) {
        try await parts.client.call(
            "/",
            BlueZ.objectManager,
            "GetManagedObjects",
            within: limits.load,
            onReply: { [weak self] outcome in self?.install(outcome, from: owner) }
        )
        guard parts.objects.isLoaded || parts.client.owner != owner else {
            throw DBusError(name: DBusError.failedName, message: "its answer has none")
        }
    }

    private func install(_ outcome: Result<[DBusValue], DBusError>, from owner: String) {
        guard parts.client.owner == owner, !isClosed, let objects = try? outcome.get().first else { return }
        parts.objects.load(objects)
        publish(availability.becomeAvailable())
        for event in parts.objects.tree.announcements() { publish(event) }
        for adapter in parts.objects.tree.adapters.duplicates { router.warn(ofDuplicate: adapter) }
    }

    private func becomeUnavailable(_ detail: String) {
        guard !isClosed else { return }
        publish(availability.becomeUnavailable(detail))
    }

    private func publish(_ event: CentralEvent?) {
        if let event { parts.events.push(event) }
    }
}
