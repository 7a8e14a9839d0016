import GattherdDBus
import GattherdSync

/// What takes a while, for ``SimulatorRunner`` to do.
enum Job: Sendable {
    /// The virtual daemon shall come.
    case start
    /// It shall go.
    case stop
    case ask(AgentRequest)
}

/// The part of a simulator that waits for the bus; it lives on the loop.
actor SimulatorRunner {
    private let loop: EventLoop
    private let edge: LoopConfined<SimulatorEdge>
    private let address: DBusAddress
    private let isReady: LatestValue<Bool>
    private let errands: AsyncStream<Job>
    private let post: AsyncStream<Job>.Continuation
    private var control: DBusConnection?
    private var daemon: DBusConnection?

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - edge: Serves the connections.
    ///   - loop: The actor's executor.
    ///   - address: The bus.
    ///   - isReady: Told when the virtual daemon comes and goes.
    ///   - errands: What comes up; and where more may be given.
    init(
        _ edge: LoopConfined<SimulatorEdge>,
        on loop: EventLoop,
        _ address: DBusAddress,
        _ isReady: LatestValue<Bool>,
        errands: (AsyncStream<Job>, AsyncStream<Job>.Continuation)
    ) {
        self.loop = loop
        self.edge = edge
        self.address = address
        self.isReady = isReady
        (self.errands, post) = errands
    }

    func perform(_ order: SimulatorOrder) throws(SimulatorOrderError) {
        try edge.value.perform(order)
    }

    /// Runs until its task is cancelled or the bus is gone.
    func run() async throws(DBusError) {
        do throws(DBusError) {
            try await openControl()
            post.yield(.start)
            try await follow()
        } catch {
            await close()
            guard !Task.isCancelled else { return }
            throw error
        }
        let isLost = await control?.isConnected == false
        await close()
        if isLost { throw DBusError(name: DBusError.disconnectedName, message: "the bus at \(address) is gone") }
    }

    /// Starts and ends the virtual daemon as ordered; agents are asked meanwhile.
    private func follow() async throws(DBusError) {
        let result = await withDiscardingTaskGroup { group -> Result<Void, DBusError> in
            for await errand in errands {
                do throws(DBusError) {
                    try await run(errand, in: &group)
                } catch {
                    group.cancelAll()
                    return .failure(error)
                }
            }
            group.cancelAll()
            return .success(())
        }
        try result.get()
    }

    private func run(_ errand: Job, in group: inout DiscardingTaskGroup) async throws(DBusError) {
        switch errand {
        case .start:
            isReady.set(false)
            try await startDaemon()
            isReady.set(true)
        case .stop:
            isReady.set(false)
            await daemon?.close()
            daemon = nil
        case .ask(let question):
            guard let daemon else { return }
            group.addTask { await self.ask(question, on: daemon) }
        }
    }

    /// Calls the agent and hands its answer on; one who is gone answers with an error.
    private func ask(_ question: AgentRequest, on daemon: DBusConnection) async {
        let agent = question.agent
        let answer: AgentAnswer
        do throws(DBusError) {
            let values = try await daemon.call(
                agent.owner,
                agent.path,
                InterfaceName.agent,
                question.member,
                question.arguments,
                timeout: .seconds(60)
            )
            answer = AgentAnswer(isYes: true, passkey: values.first?.int.flatMap(UInt32.init(exactly:)))
        } catch {
            answer = AgentAnswer(isYes: false)
        }
        edge.value.take(answer, to: question.id)
    }

    private func close() async {
        isReady.set(false)
        edge.value.shutDown()
        await daemon?.close()
        await control?.close()
    }

    /// As the real one: the objects are there before the name is.
    private func startDaemon() async throws(DBusError) {
        let connection = try await DBusConnection.open(address, on: loop)
        daemon = connection
        edge.value.serve(connection)
        try await connection.addMatch("type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged'")
        try await connection.requestName("org.bluez")
    }

    private func openControl() async throws(DBusError) {
        let connection = try await DBusConnection.open(address, on: loop)
        control = connection
        connection.onDisconnect { [post] in post.finish() }
        connection.export(ControlInterface.path) { [edge] call in
            do throws(DBusError) {
                try call.reply(try Self.answer(call, edge.value))
            } catch {
                try? call.fail(error)
            }
        }
        try await connection.requestName(ControlInterface.busName)
    }

    private static func answer(_ call: DBusMethodCall, _ edge: SimulatorEdge) throws(DBusError) -> [DBusValue] {
        switch (call.interface, call.member) {
        case (InterfaceName.introspectable, "Introspect"): return [.string(ControlInterface.introspection)]
        case (ControlInterface.name, "Status"), ("", "Status"): return [edge.status]
        default: break
        }
        let order = try ControlInterface.order(call.member, try call.arguments())
        do throws(SimulatorOrderError) {
            try edge.perform(order)
            return []
        } catch {
            throw DBusError(name: ControlInterface.failedName, message: error.description)
        }
    }
}
