@_exported public import GattherdBlueZ
@_exported public import GattherdSimulator

/// Runs a central on simulated peripherals, in this process and on a bus of its own, for as long as `body` does.
///
///     try await withSimulatedCentral(
///         """
///         peripherals:
///           - {name: strap, address: "C0:FF:EE:00:00:01", kind: heart-rate}
///         """
///     ) { central, simulator in
///         for try await advertisement in central.scan(services: [0x180D]) { … }
///         try await simulator.perform(.drop("strap"))
///     }
///
/// It needs `dbus-daemon`, and no Bluetooth.
///
/// - Parameters:
///   - scenario: Who is there, as YAML: the simulator's README says how.
///   - configuration: As that of `withCentral`.
///   - body: What to do; the central is ready.
/// - Returns: What `body` gives.
/// - Throws: What `body` throws; what is wrong with the scenario; ``SimulatorError`` when no bus can be started.
public func withSimulatedCentral<Value>(
    _ scenario: String,
    configuration: Central.Configuration = Central.Configuration(),
    _ body: (Central, Simulator) async throws -> Value
) async throws -> Value {
    let bus = try BusDaemon()
    let simulator = try Simulator(try Scenario(scenario, file: "scenario"), on: bus.address)
    return try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await simulator.run() }
        guard await simulator.waitUntilReady() else {
            try await group.waitForAll()
            throw CancellationError()
        }
        let result = try await withCentral(on: .address("\(bus.address)"), configuration: configuration) { central in
            try await central.waitUntilReady()
            return try await body(central, simulator)
        }
        group.cancelAll()
        return result
    }
}
