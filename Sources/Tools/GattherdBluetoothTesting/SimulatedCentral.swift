@_exported public import GattherdBlueZ
import GattherdDBus
import GattherdProcess
@_exported public import GattherdSimulator

/// Runs a central with simulated peripherals, in this process and on a private bus, while `body` runs.
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
/// Needs `dbus-daemon`, but no Bluetooth hardware.
///
/// - Parameters:
///   - scenario: The peripherals as YAML, in the format of the simulator's README.
///   - configuration: The central's configuration, as for `withCentral`.
///   - log: Called with each of the central's log entries, as for `withCentral`.
///   - body: The code to run when the central is ready.
/// - Returns: The value that `body` returns.
/// - Throws: The error of `body`, a ``ScenarioError``, or an error if no private bus can be started.
public func withSimulatedCentral<Value>(
    _ scenario: String,
    configuration: Central.Configuration = Central.Configuration(),
    log: Log = .silent,
    _ body: (Central, Simulator) async throws -> Value
) async throws -> Value {
    try await withSimulatedBus(scenario) { bus, simulator in
        try await withCentral(on: bus, configuration: configuration, log: log) { central in
            try await central.waitUntilReady()
            return try await body(central, simulator)
        }
    }
}

/// Runs simulated peripherals in this process and on a private bus, while `body` runs.
///
/// The bus outlives centrals. A test that runs `withCentral` several times on it plays several runs of a program, or
/// several programs:
///
///     try await withSimulatedBus(scenario) { bus, simulator in
///         let snapshot = try await withCentral(on: bus, configuration: keepsLinks) { central in … }
///         try await simulator.perform(.drop("strap"))
///         try await withCentral(on: bus) { central in
///             try await central.restore(from: snapshot, autoconnect: .whenUnexpected)
///         }
///     }
///
/// Needs `dbus-daemon`, but no Bluetooth hardware.
///
/// - Parameters:
///   - scenario: The peripherals as YAML, in the format of the simulator's README.
///   - body: The code to run when the simulator is ready.
/// - Returns: The value that `body` returns.
/// - Throws: The error of `body`, a ``ScenarioError``, or an error if no private bus can be started.
public func withSimulatedBus<Value>(
    _ scenario: String,
    _ body: (BluetoothBus, Simulator) async throws -> Value
) async throws -> Value {
    let bus = try PrivateBus()
    let simulator = try Simulator(try Scenario(scenario, file: "scenario"), on: .address(bus.address))
    return try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await simulator.run() }
        guard await simulator.waitUntilReady() else {
            try await group.waitForAll()
            throw CancellationError()
        }
        let result = try await body(.address(bus.address), simulator)
        group.cancelAll()
        return result
    }
}
