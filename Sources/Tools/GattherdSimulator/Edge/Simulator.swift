public import GattherdDBus
public import GattherdSync

/// The reason why a simulator could not start or continue.
public struct SimulatorError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// A virtual `org.bluez` on a bus, with the peripherals of a scenario; several of them if it has several gateways.
///
/// Owns the bus names `org.bluez` and `org.gattherd.Simulator`; the latter accepts orders (``ControlInterface``).
public final class Simulator: Sendable {
    /// True while bluetoothd has its bus name and answers, on all buses.
    ///
    /// Finished when ``run()`` ends.
    public var isReady: LatestValue<Bool> { readiness.all }

    private let loop = EventLoop(name: "simulator")
    private let gateways: [String]
    private let readiness: SimulatorReadiness
    private let runners: [SimulatorRunner]

    /// Prepares a simulator of one gateway, which starts with ``run()``.
    ///
    /// - Parameters:
    ///   - scenario: The adapters and peripherals.
    ///   - address: The bus.
    ///   - truthPath: A file for the events at the peripherals, one JSON object per line.
    /// - Throws: ``SimulatorError`` if the file cannot be created, or the scenario has several gateways.
    public convenience init(
        _ scenario: Scenario,
        on address: DBusAddress,
        truthPath: String? = nil
    ) throws(SimulatorError) {
        try self.init(scenario, on: [address], truthPath: truthPath)
    }

    /// Prepares a simulator, which starts with ``run()``.
    ///
    /// - Parameters:
    ///   - scenario: The gateways and peripherals.
    ///   - addresses: The buses of the gateways, in their order.
    ///   - truthPath: A file for the events at the peripherals, one JSON object per line.
    /// - Throws: ``SimulatorError`` if the file cannot be created, or the number of buses is not that of the gateways.
    public init(
        _ scenario: Scenario,
        on addresses: [DBusAddress],
        truthPath: String? = nil
    ) throws(SimulatorError) {
        let count = scenario.allGateways.count
        guard addresses.count == count else {
            throw SimulatorError("the scenario needs a bus for each of its \(count) gateways, not \(addresses.count)")
        }
        // Unbounded, since jobs are few: starts and ends of bluetoothd, and one agent request per pairing.
        let jobs = addresses.map { _ in AsyncStream.makeStream(of: SimulatorJob.self, bufferingPolicy: .unbounded) }
        let truth: TruthLog? = if let truthPath { try TruthLog(path: truthPath) } else { nil }
        let edge = SimulatorEdge(scenario, on: loop, truth: truth, jobs: jobs.map(\.continuation))
        let confined = LoopConfined(edge, to: loop)
        let (loop, readiness) = (loop, SimulatorReadiness(count))
        self.readiness = readiness
        gateways = scenario.gateways.map(\.name)
        runners = zip(addresses, jobs).enumerated().map { number, place in
            SimulatorRunner(number, confined, on: loop, place.0, readiness, jobs: place.1)
        }
    }

    /// Runs the simulator until its task is cancelled.
    ///
    /// Call it only once.
    ///
    /// - Throws: ``SimulatorError`` if a bus cannot be reached or is lost, or another client owns a name.
    public func run() async throws(SimulatorError) {
        defer {
            isReady.finish()
            loop.stop()
        }
        let result = await withTaskGroup(of: Result<Void, DBusError>.self) { group in
            for runner in runners { group.addTask { await Self.outcome(of: runner) } }
            var first: Result<Void, DBusError> = .success(())
            for await result in group {
                if case .success = first { first = result }
                group.cancelAll()
            }
            return first
        }
        do throws(DBusError) {
            try result.get()
        } catch {
            throw SimulatorError(error.message)
        }
    }

    private static func outcome(of runner: SimulatorRunner) async -> Result<Void, DBusError> {
        do throws(DBusError) {
            return .success(try await runner.run())
        } catch {
            return .failure(error)
        }
    }

    /// Waits until bluetoothd answers, on all buses.
    ///
    /// Returns false if ``run()`` has ended or the caller is cancelled.
    public func waitUntilReady() async -> Bool {
        for await isReady in isReady.watch() where isReady { return true }
        return false
    }

    /// Performs an order.
    ///
    /// - Parameters:
    ///   - order: An order.
    ///   - gateway: The name of the gateway whose adapter or bluetoothd is meant; `nil` for the first one. Orders for
    ///     peripherals need none.
    /// - Throws: ``SimulatorOrderError`` if the order does not fit the scenario.
    public func perform(_ order: SimulatorOrder, at gateway: String? = nil) async throws(SimulatorOrderError) {
        let number = gateway.map { gateways.firstIndex(of: $0) ?? -1 } ?? 0
        guard runners.indices.contains(number) else {
            throw SimulatorOrderError("there is no gateway '\(gateway ?? "")' in the scenario")
        }
        try await runners[number].perform(order)
    }
}

/// The gateways whose bluetoothd answers.
struct SimulatorReadiness: Sendable {
    /// True while all of them answer.
    let all = LatestValue(false)
    private let gateways: Locked<[Bool]>

    init(_ count: Int) {
        gateways = Locked(Array(repeating: false, count: count))
    }

    func set(_ isReady: Bool, _ gateway: Int) {
        let areReady = gateways.withLock { gateways in
            gateways[gateway] = isReady
            return !gateways.contains(false)
        }
        all.set(areReady)
    }
}
