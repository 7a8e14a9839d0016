public import GattherdDBus
public import GattherdSync

/// The reason why a simulator could not start or continue.
public struct SimulatorError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// A virtual `org.bluez` on a bus, with the peripherals of a scenario.
///
/// Owns the bus names `org.bluez` and `org.gattherd.Simulator`, which takes orders (``ControlInterface``).
public final class Simulator: Sendable {
    /// True while bluetoothd has its bus name and answers.
    ///
    /// Finished when ``run()`` ends.
    public let isReady = LatestValue(false)

    private let loop = EventLoop(name: "simulator")
    private let runner: SimulatorRunner

    /// Prepares a simulator, which starts with ``run()``.
    ///
    /// - Parameters:
    ///   - scenario: The adapters and peripherals.
    ///   - address: The bus.
    ///   - truthPath: A file for the events at the peripherals, one JSON object per line.
    /// - Throws: ``SimulatorError`` if the file cannot be created.
    public init(_ scenario: Scenario, on address: DBusAddress, truthPath: String? = nil) throws(SimulatorError) {
        // Unbounded, since jobs are few: starts and ends of bluetoothd, and one agent request per pairing.
        let (jobs, post) = AsyncStream.makeStream(of: SimulatorJob.self, bufferingPolicy: .unbounded)
        let truth: TruthLog? = if let truthPath { try TruthLog(path: truthPath) } else { nil }
        let edge = SimulatorEdge(scenario, on: loop, truth: truth, jobs: post)
        runner = SimulatorRunner(LoopConfined(edge, to: loop), on: loop, address, isReady, jobs: (jobs, post))
    }

    /// Runs the simulator until its task is cancelled.
    ///
    /// Call it only once.
    ///
    /// - Throws: ``SimulatorError`` if the bus cannot be reached or is lost, or a name is taken.
    public func run() async throws(SimulatorError) {
        defer {
            isReady.finish()
            loop.stop()
        }
        do throws(DBusError) {
            try await runner.run()
        } catch {
            throw SimulatorError(error.message)
        }
    }

    /// Waits until bluetoothd answers.
    ///
    /// Returns false if ``run()`` has ended or the caller is cancelled.
    public func waitUntilReady() async -> Bool {
        for await isReady in isReady.watch() where isReady { return true }
        return false
    }

    /// Performs an order.
    ///
    /// - Throws: ``SimulatorOrderError`` if the order does not fit the scenario.
    public func perform(_ order: SimulatorOrder) async throws(SimulatorOrderError) {
        try await runner.perform(order)
    }
}
