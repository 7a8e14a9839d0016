import GattherdDBus
import GattherdSync

/// The part of a simulator that waits for the bus; it lives on the loop.
actor SimulatorRunner {
    private let loop: EventLoop
    private let edge: LoopConfined<SimulatorEdge>
    private let address: DBusAddress
    private let isReady: StateBoard<Bool>
    private let orders: AsyncStream<Bool>
    private let post: AsyncStream<Bool>.Continuation
    private var control: DBusConnection?
    private var daemon: DBusConnection?

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - edge: Serves the connections.
    ///   - loop: The actor's executor.
    ///   - address: The bus.
    ///   - isReady: Told when the virtual daemon comes and goes.
    ///   - orders: When the virtual daemon shall start (true) and end; and where more may be given.
    init(
        _ edge: LoopConfined<SimulatorEdge>,
        on loop: EventLoop,
        _ address: DBusAddress,
        _ isReady: StateBoard<Bool>,
        orders: (AsyncStream<Bool>, AsyncStream<Bool>.Continuation)
    ) {
        self.loop = loop
        self.edge = edge
        self.address = address
        self.isReady = isReady
        (self.orders, post) = orders
    }

    func perform(_ order: SimulatorOrder) throws(SimulatorOrderError) {
        try edge.value.perform(order)
    }

    /// Runs until its task is cancelled or the bus is gone.
    func run() async throws(DBusError) {
        do throws(DBusError) {
            try await openControl()
            post.yield(true)
            try await follow()
        } catch {
            await close()
            throw error
        }
        let isLost = await control?.isConnected == false
        await close()
        if isLost { throw DBusError(name: DBusError.disconnectedName, message: "the bus at \(address) is gone") }
    }

    /// Starts and ends the virtual daemon as ordered.
    private func follow() async throws(DBusError) {
        for await isStarting in orders {
            isReady.set(false)
            await daemon?.close()
            daemon = nil
            if isStarting { try await startDaemon() }
            isReady.set(isStarting)
        }
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
