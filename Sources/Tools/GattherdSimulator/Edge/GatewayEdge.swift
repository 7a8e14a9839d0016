import GattherdDBus
import GattherdSync

/// The bus connection and the sockets of one gateway: makes events of calls, and executes effects.
///
/// Confined to the loop's thread.
final class GatewayEdge {
    /// The name in the truth log; `nil` if there is only one gateway.
    private let name: String?
    private let truth: TruthLog?
    private let jobs: AsyncStream<SimulatorJob>.Continuation
    private let handle: (VirtualBlueZ.Event) -> Void
    private let sockets: AcquiredSockets
    private var bluez: DBusConnection?
    private var calls: [CallToken: DBusMethodCall] = [:]
    private var nextCall: UInt64 = 0

    /// - Parameters:
    ///   - name: The name in the truth log.
    ///   - loop: The event loop.
    ///   - truth: The log of the events at the peripherals.
    ///   - jobs: Receives the asynchronous jobs.
    ///   - handle: Receives the events.
    init(
        _ name: String?,
        on loop: EventLoop,
        truth: TruthLog?,
        jobs: AsyncStream<SimulatorJob>.Continuation,
        _ handle: @escaping (VirtualBlueZ.Event) -> Void
    ) {
        self.name = name
        self.truth = truth
        self.jobs = jobs
        self.handle = handle
        sockets = AcquiredSockets(on: loop)
    }

    /// Serves bluetoothd's objects on `connection`.
    func serve(_ connection: DBusConnection) {
        bluez = connection
        connection.export("/", subtree: true) { [weak self] call in self?.receive(call) }
        connection.onSignal { [handle] signal in
            guard signal.isSignal("org.freedesktop.DBus", "NameOwnerChanged"),
                let arguments = try? signal.arguments(), arguments.count == 3, arguments[2].string == "",
                let name = arguments[0].string, name.hasPrefix(":")
            else { return }
            handle(.clientLeft(name))
        }
    }

    /// Closes all sockets and drops all calls.
    func shutDown() {
        sockets.closeAll()
        calls.removeAll()
        bluez = nil
    }

    private func receive(_ call: DBusMethodCall) {
        let arguments: [DBusValue]
        do throws(DBusError) {
            arguments = try call.arguments()
        } catch {
            try? call.fail(error)
            return
        }
        let token = CallToken(id: nextCall)
        nextCall += 1
        calls[token] = call
        let method = MethodCall(
            token: token,
            sender: call.sender,
            path: call.path,
            interface: call.interface,
            member: call.member,
            arguments: arguments
        )
        handle(.call(method))
    }

    /// Executes one effect on the bus, in a socket or in the truth log.
    func execute(_ effect: Effect) {
        switch effect {
        case .reply(let token, let value):
            answer(token) { call throws(DBusError) in try call.reply(value.map { [$0] } ?? []) }
        case .fail(let token, let error): answer(token) { call throws(DBusError) in try call.fail(error) }
        case .openSocket(let id, let token, let mtu, let isRead): openSocket(id, token, mtu, isRead: isRead)
        case .closeSocket(let id): sockets.close(id)
        case .send(let id, var record):
            record.isDelivered = sockets.send(record.payload, to: id)
            truth?.add(.notification(record), gateway: name)
        case .changed(let path, let interface, let properties, let invalidated):
            emit(
                path,
                InterfaceName.properties,
                "PropertiesChanged",
                [
                    .string(interface), .properties(properties), .strings(invalidated),
                ]
            )
        case .added(let path, let interfaces):
            emit("/", InterfaceName.objectManager, "InterfacesAdded", [.objectPath(path), .interfaces(interfaces)])
        case .removed(let path, let interfaces):
            emit("/", InterfaceName.objectManager, "InterfacesRemoved", [.objectPath(path), .strings(interfaces)])
        case .record(let event): truth?.add(event, gateway: name)
        case .stopDaemon:
            bluez = nil
            calls.removeAll()
            jobs.yield(.stop)
        case .startDaemon: jobs.yield(.start)
        case .ask(let request): jobs.yield(.ask(request))
        case .notifyAgent(let agent, let member):
            try? bluez?.post(agent.owner, agent.path, InterfaceName.agent, member)
        }
    }

    /// Answers a call.
    ///
    /// Errors are ignored: the caller or the bus is gone.
    private func answer(_ token: CallToken, _ body: (DBusMethodCall) throws(DBusError) -> Void) {
        guard let call = calls.removeValue(forKey: token) else { return }
        try? body(call)
    }

    private func emit(_ path: String, _ interface: String, _ member: String, _ arguments: [DBusValue]) {
        try? bluez?.emit(path, interface, member, arguments)
    }

    private func openSocket(_ id: SocketID, _ token: CallToken, _ mtu: UInt16, isRead: Bool) {
        let end = sockets.open(id, isRead: isRead) { [handle] event in handle(event) }
        guard let end else {
            return answer(token) { call throws(DBusError) in try call.fail(.bluez("Failed", "no sockets left")) }
        }
        answer(token) { call throws(DBusError) in try call.reply([.fileDescriptor(end), .uint16(mtu)]) }
    }
}
