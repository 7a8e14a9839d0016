import GattherdDBus
import GattherdSync

/// Carries out what the machine asks for; on the loop's thread only.
final class SimulatorEdge {
    private var world: VirtualBlueZ
    private let loop: EventLoop
    private let truth: TruthLog?
    private let errands: AsyncStream<Job>.Continuation
    private let start = SuspendingClock.now
    private var bluez: DBusConnection?
    private var calls: [CallToken: DBusMethodCall] = [:]
    private var nextCall: UInt64 = 0
    private var sockets: [SocketID: AcquiredSocket] = [:]
    private var timer: (due: Duration, timer: LoopTimer)?

    /// - Parameters:
    ///   - scenario: The neighbourhood.
    ///   - loop: Where everything happens.
    ///   - truth: Where to write what happens at the peripherals.
    ///   - errands: Told what needs waiting.
    init(
        _ scenario: Scenario,
        on loop: EventLoop,
        truth: TruthLog?,
        errands: AsyncStream<Job>.Continuation
    ) {
        world = VirtualBlueZ(scenario)
        self.loop = loop
        self.truth = truth
        self.errands = errands
    }

    private var now: Duration { SuspendingClock.now - start }

    /// Answers on `connection` as bluetoothd.
    func serve(_ connection: DBusConnection) {
        bluez = connection
        connection.export("/", subtree: true) { [weak self] call in self?.receive(call) }
        connection.onSignal { [weak self] signal in
            guard signal.isSignal("org.freedesktop.DBus", "NameOwnerChanged"),
                let arguments = try? signal.arguments(), arguments.count == 3, arguments[2].string == "",
                let name = arguments[0].string, name.hasPrefix(":")
            else { return }
            self?.handle(.clientLeft(name))
        }
    }

    /// Carries out an order.
    func perform(_ order: SimulatorOrder) throws(SimulatorOrderError) {
        handle(.control(try world.command(for: order)))
    }

    /// Hands on what an agent answered.
    func take(_ answer: AgentAnswer, to question: UInt64) {
        handle(.agentAnswered(question, answer))
    }

    var status: DBusValue { world.status }

    /// Ends everything.
    func shutDown() {
        if let timer { loop.cancel(timer.timer) }
        for socket in sockets.keys { close(socket) }
        calls.removeAll()
        bluez = nil
        truth?.flush()
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

    private func handle(_ event: VirtualBlueZ.Event) {
        carryOut(world.handle(event, at: now))
    }

    private func carryOut(_ effects: [Effect]) {
        for effect in effects { carryOut(effect) }
        truth?.flush()
        armTimer()
    }

    /// One timer for everything that the machine waits for.
    private func armTimer() {
        guard let due = world.nextDeadline, due < timer?.due ?? .seconds(Int64.max) else { return }
        if let timer { loop.cancel(timer.timer) }
        let handle = loop.schedule(after: due - now) { [weak self] in
            guard let self else { return }
            timer = nil
            carryOut(world.advance(to: now))
        }
        timer = (due, handle)
    }

    private func carryOut(_ effect: Effect) {
        switch effect {
        case .reply(let token, let value):
            answer(token) { call throws(DBusError) in try call.reply(value.map { [$0] } ?? []) }
        case .fail(let token, let error): answer(token) { call throws(DBusError) in try call.fail(error) }
        case .openSocket(let id, let token, let mtu, let isRead): openSocket(id, token, mtu, isRead: isRead)
        case .closeSocket(let id): close(id)
        case .send(let id, var record):
            record.isDelivered = sockets[id]?.send(record.payload) ?? false
            truth?.add(.notification(record))
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
        case .record(let event): truth?.add(event)
        case .stopDaemon:
            bluez = nil
            calls.removeAll()
            errands.yield(.stop)
        case .startDaemon: errands.yield(.start)
        case .ask(let question): errands.yield(.ask(question))
        case .tell(let agent, let member):
            try? bluez?.post(agent.owner, agent.path, InterfaceName.agent, member)
        }
    }

    /// A caller that is gone, and a bus that is gone, hear nothing.
    private func answer(_ token: CallToken, _ body: (DBusMethodCall) throws(DBusError) -> Void) {
        guard let call = calls.removeValue(forKey: token) else { return }
        try? body(call)
    }

    private func emit(_ path: String, _ interface: String, _ member: String, _ arguments: [DBusValue]) {
        try? bluez?.emit(path, interface, member, arguments)
    }

    private func openSocket(_ id: SocketID, _ token: CallToken, _ mtu: UInt16, isRead: Bool) {
        guard let (ours, theirs) = AcquiredSocket.pair() else {
            return answer(token) { call throws(DBusError) in try call.fail(.bluez("Failed", "no sockets left")) }
        }
        sockets[id] = ours
        try? loop.watch(ours.descriptor, for: isRead ? .readable : []) { [weak self] ready in
            if ready.contains(.readable) { self?.receive(from: id) }
            guard !ready.isDisjoint(with: [.hangUp, .error]) else { return }
            self?.close(id)
            self?.handle(.socketClosed(id))
        }
        answer(token) { call throws(DBusError) in try call.reply([.fileDescriptor(theirs), .uint16(mtu)]) }
    }

    /// Takes what a client writes; as with the real one nothing is read any more after an empty packet.
    private func receive(from id: SocketID) {
        guard let socket = sockets[id] else { return }
        while let packet = socket.receive() {
            guard !packet.isEmpty else {
                try? loop.rewatch(socket.descriptor, for: [])
                return
            }
            handle(.packet(packet, id))
        }
    }

    private func close(_ id: SocketID) {
        guard let socket = sockets.removeValue(forKey: id) else { return }
        loop.unwatch(socket.descriptor)
        socket.close()
    }
}
