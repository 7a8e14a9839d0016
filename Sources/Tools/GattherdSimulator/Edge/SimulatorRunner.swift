import GattherdDBus
import GattherdSync

/// An asynchronous job of ``SimulatorRunner``.
enum SimulatorJob: Sendable {
    /// Starts bluetoothd.
    case start
    /// Stops bluetoothd.
    case stop
    /// Calls an agent.
    case ask(AgentRequest)
}

/// Connects to the bus of one gateway and runs the asynchronous jobs of its bluetoothd, on the simulator's loop.
actor SimulatorRunner {
    /// The limit of an agent's reply: as in bluetoothd, a person has a minute to enter a passkey.
    private static let agentLimit = Duration.seconds(60)

    private let loop: EventLoop
    private let edge: LoopConfined<SimulatorEdge>
    private let address: DBusAddress
    private let gateway: Int
    private let readiness: SimulatorReadiness
    private let jobs: AsyncStream<SimulatorJob>
    private let post: AsyncStream<SimulatorJob>.Continuation
    private var control: DBusConnection?
    private var daemon: DBusConnection?

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - gateway: The gateway's number.
    ///   - edge: Serves the connections.
    ///   - loop: The actor's executor.
    ///   - address: The bus.
    ///   - readiness: The gateways whose bluetoothd answers.
    ///   - jobs: The jobs, and their continuation.
    init(
        _ gateway: Int,
        _ edge: LoopConfined<SimulatorEdge>,
        on loop: EventLoop,
        _ address: DBusAddress,
        _ readiness: SimulatorReadiness,
        jobs: (AsyncStream<SimulatorJob>, AsyncStream<SimulatorJob>.Continuation)
    ) {
        self.gateway = gateway
        self.loop = loop
        self.edge = edge
        self.address = address
        self.readiness = readiness
        (self.jobs, post) = jobs
    }

    func perform(_ order: SimulatorOrder) throws(SimulatorOrderError) {
        try edge.value.perform(order, at: gateway)
    }

    /// Runs the simulator until its task is cancelled or the bus is lost.
    func run() async throws(DBusError) {
        do throws(DBusError) {
            try await openControl()
            post.yield(.start)
            try await runJobs()
        } catch {
            await close()
            guard !Task.isCancelled else { return }
            throw error
        }
        let isLost = await control?.isConnected == false
        await close()
        if isLost {
            throw DBusError(name: DBusError.disconnectedName, message: "lost the connection to the bus at \(address)")
        }
    }

    /// Runs the jobs.
    ///
    /// Agents are called concurrently.
    private func runJobs() async throws(DBusError) {
        let result = await withDiscardingTaskGroup { group -> Result<Void, DBusError> in
            for await job in jobs {
                do throws(DBusError) {
                    try await run(job, in: &group)
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

    private func run(_ job: SimulatorJob, in group: inout DiscardingTaskGroup) async throws(DBusError) {
        switch job {
        case .start:
            readiness.set(false, gateway)
            try await startDaemon()
            readiness.set(true, gateway)
        case .stop:
            readiness.set(false, gateway)
            await daemon?.close()
            daemon = nil
        case .ask(let request):
            guard let daemon else { return }
            group.addTask { await self.ask(request, on: daemon) }
        }
    }

    /// Calls an agent and handles its reply.
    ///
    /// An agent that is gone replies with an error.
    private func ask(_ request: AgentRequest, on daemon: DBusConnection) async {
        let agent = request.agent
        let answer: AgentAnswer
        do throws(DBusError) {
            let values = try await daemon.call(
                agent.owner,
                agent.path,
                InterfaceName.agent,
                request.member,
                request.arguments,
                timeout: Self.agentLimit
            )
            answer = AgentAnswer(isYes: true, passkey: values.first?.int.flatMap(UInt32.init(exactly:)))
        } catch {
            answer = AgentAnswer(isYes: false)
        }
        edge.value.receive(answer, to: request.id, of: gateway)
    }

    private func close() async {
        readiness.set(false, gateway)
        edge.value.shutDown(gateway)
        await daemon?.close()
        await control?.close()
    }

    /// Exports the objects before it requests the name, like bluetoothd.
    private func startDaemon() async throws(DBusError) {
        let connection = try await DBusConnection.open(address, on: loop)
        daemon = connection
        edge.value.serve(connection, of: gateway)
        edge.value.armTimer()
        try await connection.addMatch("type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged'")
        try await connection.requestName("org.bluez")
    }

    private func openControl() async throws(DBusError) {
        let connection = try await DBusConnection.open(address, on: loop)
        control = connection
        connection.onDisconnect { [post] in post.finish() }
        connection.export(ControlInterface.path) { [edge, gateway] call in
            do throws(DBusError) {
                try call.reply(try Self.answer(call, edge.value, gateway))
            } catch {
                try? call.fail(error)
            }
        }
        try await connection.requestName(ControlInterface.busName)
    }

    private static func answer(
        _ call: DBusMethodCall,
        _ edge: SimulatorEdge,
        _ gateway: Int
    ) throws(DBusError) -> [DBusValue] {
        switch (call.interface, call.member) {
        case (InterfaceName.introspectable, "Introspect"): return [.string(ControlInterface.introspection)]
        case (ControlInterface.name, "Status"), ("", "Status"): return [edge.status]
        default: break
        }
        let order = try ControlInterface.order(call.member, try call.arguments())
        do throws(SimulatorOrderError) {
            try edge.perform(order, at: gateway)
            return []
        } catch {
            throw DBusError(name: ControlInterface.failedName, message: error.description)
        }
    }
}
