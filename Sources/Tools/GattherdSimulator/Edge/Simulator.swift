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
    /// True while it has the name `org.bluez` and answers; finished when ``run()`` ends.
    public let isReady = LatestValue(false)

    private let loop = EventLoop(name: "simulator")
    private let runner: SimulatorRunner

    /// - Parameters:
    ///   - scenario: The neighbourhood.
    ///   - address: The bus.
    ///   - truthPath: A file for what happens at the peripherals, one JSON object to a line.
    /// - Throws: ``SimulatorError`` when that file cannot be made.
    public init(_ scenario: Scenario, on address: DBusAddress, truthPath: String? = nil) throws(SimulatorError) {
        // Errands are few: starts and ends of the virtual daemon, and one question for each pairing.
        let (errands, post) = AsyncStream.makeStream(of: Job.self, bufferingPolicy: .unbounded)
        let truth: TruthLog? = if let truthPath { try TruthLog(path: truthPath) } else { nil }
        let edge = SimulatorEdge(scenario, on: loop, truth: truth, errands: post)
        runner = SimulatorRunner(LoopConfined(edge, to: loop), on: loop, address, isReady, errands: (errands, post))
    }

    /// Runs until its task is cancelled; only once.
    ///
    /// - Throws: ``SimulatorError`` when the bus cannot be reached or is lost, or a name is taken.
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

    /// Waits until it answers; false when it will not, because ``run()`` has ended or the caller was cancelled.
    public func waitUntilReady() async -> Bool {
        for await isReady in isReady.watch() where isReady { return true }
        return false
    }

    /// Carries out an order; for programs that have the simulator in their own process.
    ///
    /// - Throws: ``SimulatorOrderError`` when no such thing is in the scenario.
    public func perform(_ order: SimulatorOrder) async throws(SimulatorOrderError) {
        try await runner.perform(order)
    }
}
