public import GattherdDBus
public import GattherdSync

/// Why a simulator could not start or go on.
public struct SimulatorError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// A virtual `org.bluez` on a bus, with the peripherals of a scenario.
///
/// It has the bus name `org.bluez`, and `org.gattherd.Simulator` for orders by D-Bus (``ControlInterface``).
public final class Simulator: Sendable {
    /// True while it has the name `org.bluez` and answers.
    public let isReady = StateBoard(false)

    private let address: DBusAddress
    private let loop = EventLoop(name: "simulator")
    private let edge: LoopConfined<SimulatorEdge>
    private let daemonOrders: AsyncStream<Bool>
    private let daemonOrderPost: AsyncStream<Bool>.Continuation

    /// - Parameters:
    ///   - scenario: The neighbourhood.
    ///   - address: The bus.
    ///   - truthPath: A file for what happens at the peripherals, one JSON object to a line.
    /// - Throws: ``SimulatorError`` when that file cannot be made.
    public init(_ scenario: Scenario, on address: DBusAddress, truthPath: String? = nil) throws(SimulatorError) {
        self.address = address
        // Orders are few: one for each start and end of the virtual daemon.
        (daemonOrders, daemonOrderPost) = AsyncStream.makeStream(of: Bool.self, bufferingPolicy: .unbounded)
        let truth: TruthLog? = if let truthPath { try TruthLog(path: truthPath) } else { nil }
        edge = LoopConfined(SimulatorEdge(scenario, on: loop, truth: truth, daemonOrders: daemonOrderPost), to: loop)
    }

    /// Runs until its task is cancelled; only once.
    ///
    /// - Throws: ``SimulatorError`` when the bus cannot be reached or is lost, or a name is taken.
    public func run() async throws(SimulatorError) {
        defer { loop.stop() }
        let runner = SimulatorRunner(loop: loop, edge: edge, address: address, isReady: isReady)
        do throws(DBusError) {
            try await runner.run(daemonOrders, post: daemonOrderPost)
        } catch {
            throw SimulatorError(error.message)
        }
    }

    /// Waits until it answers; false when it will not.
    public func waitUntilReady() async -> Bool {
        for await isReady in isReady.watch() where isReady { return true }
        return false
    }

    /// Carries out an order; for programs that have the simulator in their own process.
    ///
    /// - Throws: ``SimulatorOrderError`` when no such thing is in the scenario.
    public func perform(_ order: SimulatorOrder) async throws(SimulatorOrderError) {
        try await SimulatorRunner(loop: loop, edge: edge, address: address, isReady: isReady).perform(order)
    }
}

/// The part of a simulator that waits for the bus; it lives on the loop.
actor SimulatorRunner {
    private let loop: EventLoop
    private let edge: LoopConfined<SimulatorEdge>
    private let address: DBusAddress
    private let isReady: StateBoard<Bool>

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    init(loop: EventLoop, edge: LoopConfined<SimulatorEdge>, address: DBusAddress, isReady: StateBoard<Bool>) {
        self.loop = loop
        self.edge = edge
        self.address = address
        self.isReady = isReady
    }

    func perform(_ order: SimulatorOrder) throws(SimulatorOrderError) {
        try edge.value.perform(order)
    }

    /// Starts and ends the virtual daemon as ordered.
    func run(_ orders: AsyncStream<Bool>, post: AsyncStream<Bool>.Continuation) async throws(DBusError) {
        let control = try await openControl(whenLost: post)
        post.yield(true)
        var daemon: DBusConnection?
        defer {
            isReady.set(false)
            edge.value.shutDown()
        }
        for await isStarting in orders {
            isReady.set(false)
            await daemon?.close()
            daemon = isStarting ? try await startDaemon() : nil
            isReady.set(isStarting)
        }
        let isLost = await !control.isConnected
        await daemon?.close()
        await control.close()
        if isLost { throw DBusError(name: DBusError.disconnectedName, message: "the bus at \(address) is gone") }
    }

    /// As the real one: the objects are there before the name is.
    private func startDaemon() async throws(DBusError) -> DBusConnection {
        let connection = try await DBusConnection.open(address, on: loop)
        edge.value.serve(connection)
        try await connection.addMatch("type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged'")
        try await connection.requestName("org.bluez")
        return connection
    }

    private func openControl(whenLost post: AsyncStream<Bool>.Continuation) async throws(DBusError) -> DBusConnection {
        let control = try await DBusConnection.open(address, on: loop)
        control.onDisconnect { post.finish() }
        control.export(ControlInterface.path) { [edge] call in
            do throws(DBusError) {
                try call.reply(try Self.answer(call, edge.value))
            } catch {
                try? call.fail(error)
            }
        }
        try await control.requestName(ControlInterface.busName)
        return control
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
