import GattherdBluetooth
import GattherdDBus

/// Calls of the current bluetoothd, which has a unique name on one connection to the bus; on the Bluetooth thread only.
final class BluetoothdClient {
    /// The time limit of a round trip, which only puts messages in order.
    private static let roundTripLimit = Duration.seconds(2)

    /// The connection to the bus, while there is one.
    private(set) var bus: DBusConnection?
    /// The unique name of bluetoothd, while it is on the bus.
    private(set) var owner: String?
    /// True while the connection closes: only answers to earlier calls arrive.
    private(set) var isLeaving = false
    /// Called when too many calls are unanswered.
    var onUnansweredCalls: () -> Void = {}
    private let limits: BlueZCentral.Limits

    init(limits: BlueZCentral.Limits) {
        self.limits = limits
    }

    // MARK: - Connection

    func attach(_ bus: DBusConnection) {
        (self.bus, owner, isLeaving) = (bus, nil, false)
    }

    func setOwner(_ owner: String?) {
        self.owner = owner
    }

    /// Refuses new calls from now on.
    func beginLeaving() {
        isLeaving = true
    }

    /// Records that the connection has ended.
    func detach() {
        (bus, owner, isLeaving) = (nil, nil, false)
    }

    // MARK: - Calls

    /// The limit of reading, writing or subscribing.
    var attributeLimit: Duration { limits.attribute }

    /// Calls bluetoothd, within ``BlueZCentral/Limits/operation`` by default; `onReply` is given each outcome.
    ///
    /// `onAnswer` is given the answer even if the waiting has ended before, or an error if none can come.
    @discardableResult
    func call(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue] = [],
        within limit: Duration? = nil,
        onReply: ((Result<[DBusValue], DBusError>) -> Void)? = nil,
        onAnswer: @escaping (Result<[DBusValue], DBusError>) -> Void = { _ in }
    ) async throws(DBusError) -> [DBusValue] {
        guard !isLeaving else {
            onReply?(.failure(.leaving))
            onAnswer(.failure(.leaving))
            throw .leaving
        }
        let limit = limit ?? limits.operation
        return try await perform(path, interface, member, arguments, within: limit, onReply, onAnswer)
    }

    private func perform(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue],
        within limit: Duration,
        _ onReply: ((Result<[DBusValue], DBusError>) -> Void)? = nil,
        _ onAnswer: @escaping (Result<[DBusValue], DBusError>) -> Void = { _ in }
    ) async throws(DBusError) -> [DBusValue] {
        guard let bus, let owner else {
            onReply?(.failure(.noBluetoothd))
            onAnswer(.failure(.noBluetoothd))
            throw .noBluetoothd
        }
        do throws(DBusError) {
            return try await bus.callOnLoop(
                owner,
                path,
                interface,
                member,
                arguments,
                timeout: limit,
                onReply: onReply,
                onAnswer: onAnswer
            )
        } catch {
            await reportUnansweredCalls(of: bus)
            throw error
        }
    }

    /// Reports that too many calls are unanswered.
    ///
    /// bluetoothd never answers some calls, for example a read whose pairing is refused. The bus counts them until the
    /// connection closes, and refuses further calls above its limit.
    private func reportUnansweredCalls(of bus: DBusConnection) async {
        guard bus === self.bus, await bus.owedAnswers >= limits.unansweredCalls else { return }
        onUnansweredCalls()
    }

    /// Waits until bluetoothd has handled everything that was sent or closed before; also on the way out.
    func makeRoundTrip() async {
        let interface = "org.freedesktop.DBus.Introspectable"
        _ = try? await perform("/org/bluez", interface, "Introspect", [], within: Self.roundTripLimit)
    }

    /// Sends a call in order with earlier and later calls; the reply may wait to be read with other messages.
    func ask(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue] = [],
        within limit: Duration? = nil,
        onReply: @escaping (Result<[DBusValue], DBusError>) -> Void
    ) {
        guard let bus, let owner else { return onReply(.failure(.noBluetoothd)) }
        bus.ask(owner, path, interface, member, arguments, timeout: limit ?? limits.operation, onReply: onReply)
    }

    /// Reports whether bluetoothd answers within a limit, also by an error.
    func ping(within limit: Duration, _ report: @escaping (Bool) -> Void) {
        ask("/", "org.freedesktop.DBus.Peer", "Ping", within: limit) { outcome in
            if case .failure(let error) = outcome { report(error.name != DBusError.timeoutName) } else { report(true) }
        }
    }

    /// Ends the calls of an object that bluetoothd has removed, if they are not answered in time.
    ///
    /// After a failed attempt to connect, BlueZ removes the object and then answers. It never answers if another client
    /// has removed the peripheral.
    func abandonCalls(ofRemoved path: String) {
        bus?.abandonCalls(of: path, after: limits.removal, .removed)
    }

    /// Calls bluetoothd without an answer.
    func post(_ path: String, _ interface: String, _ member: String) {
        guard let bus, let owner else { return }
        try? bus.post(owner, path, interface, member)
    }
}

extension DBusConnection {
    /// Exports a path for bluetoothd only: calls of other clients are refused; on the Bluetooth thread only.
    ///
    /// A call that `handler` fails to answer stays unanswered.
    nonisolated func export(
        _ path: String,
        subtree: Bool = false,
        for owner: String,
        _ handler: @escaping (DBusMethodCall) throws(DBusError) -> Void
    ) {
        let denial = DBusError(
            name: "org.freedesktop.DBus.Error.AccessDenied",
            message: "only bluetoothd may call this"
        )
        export(path, subtree: subtree) { call in
            do throws(DBusError) {
                guard call.sender == owner else { return try call.fail(denial) }
                try handler(call)
            } catch {
                // bluetoothd gives up after its own deadline.
            }
        }
    }
}

extension DBusError {
    static let noBluetoothd = DBusError(name: disconnectedName, message: "bluetoothd is not on the bus")
    static let removed = DBusError(
        name: "org.freedesktop.DBus.Error.UnknownObject",
        message: "BlueZ has removed the object"
    )
    static let leaving = DBusError(
        name: disconnectedName,
        message: "the connection to bluetoothd is being closed"
    )
}

extension BlueZCentral {
    /// The time limits of bluetoothd and of its messages.
    public struct Limits: Hashable, Sendable {
        /// The limit of a call without a radio operation.
        public var operation = Duration.seconds(10)
        /// The limit of reading, writing or subscribing; ATT's own limit of one transaction is 30 s.
        public var attribute = Duration.seconds(10)
        /// The time after the removal of an object in which answers to its calls may come.
        public var removal = Duration.seconds(1)
        /// The limit of a liveness check.
        public var livenessCheck = Duration.seconds(5)
        /// The limit of the list of all objects.
        public var load = Duration.seconds(30)
        /// The first and the longest pause between attempts to reach the bus or bluetoothd.
        public var retry = Duration.milliseconds(250)...Duration.seconds(10)
        /// The time without changes after which a GATT table that has grown may be read: other additions, or the
        /// removals, may follow at the pace of the radio.
        public var quietAfterGrowth = Duration.seconds(5)
        /// The time without changes after which a GATT table that has shrunk may be read.
        ///
        /// Removals come last, in one burst, but a busy bluetoothd may signal additions a moment later.
        public var quietAfterShrinkage = Duration.milliseconds(500)
        /// The time without changes of a GATT table after which held sessions end: the last attributes may be removed
        /// long after the others were added.
        public var sessionHold = Duration.seconds(30)
        /// The maximum delay before reading a signal while many arrive, so that several are read together.
        public var batchDelay = Duration.milliseconds(40)
        /// The number of unanswered calls at which the connection is renewed; the bus refuses calls at 128.
        public var unansweredCalls = 48
        /// The silence of bluetoothd after which its liveness is checked.
        public var livenessInterval = Duration.seconds(300)

        public init() {}
    }
}
