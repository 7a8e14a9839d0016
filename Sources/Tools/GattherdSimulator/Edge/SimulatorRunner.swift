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

/// Connects to the bus and runs the asynchronous jobs of a simulator, on its loop.
actor SimulatorRunner {
    private let loop: EventLoop
    private let edge: LoopConfined<SimulatorEdge>
    private let address: DBusAddress
    private let isReady: LatestValue<Bool>
    private let jobs: AsyncStream<SimulatorJob>
    private let post: AsyncStream<SimulatorJob>.Continuation
    private var control: DBusConnection?
    private var daemon: DBusConnection?

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - edge: Serves the connections.
    ///   - loop: The actor's executor.
    ///   - address: The bus.
    ///   - isReady: True while bluetoothd answers.
    ///   - jobs: The jobs, and their continuation.
    init(
        _ edge: LoopConfined<SimulatorEdge>,
        on loop: EventLoop,
        _ address: DBusAddress,
        _ isReady: LatestValue<Bool>,
        jobs: (AsyncStream<SimulatorJob>, AsyncStream<SimulatorJob>.Continuation)
    ) {
        self.loop = loop
        self.edge = edge
        self.address = address
        self.isReady = isReady
        (self.jobs, post) = jobs
    }

    func perform(_ order: SimulatorOrder) throws(SimulatorOrderError) {
        try edge.value.perform(order)
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
            isReady.set(false)
            try await startDaemon()
            isReady.set(true)
        case .stop:
            isReady.set(false)
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
                timeout: .seconds(60)
            )
            answer = AgentAnswer(isYes: true, passkey: values.first?.int.flatMap(UInt32.init(exactly:)))
        } catch {
            answer = AgentAnswer(isYes: false)
        }
        edge.value.receive(answer, to: request.id)
    }

    private func close() async {
        isReady.set(false)
        edge.value.shutDown()
        await daemon?.close()
        await control?.close()
    }

    /// Exports the objects before it requests the name, like bluetoothd.
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
