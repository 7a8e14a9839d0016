@_exported public import GattherdBluetooth
package import GattherdDBus

/// The message bus that bluetoothd is on.
public enum BluetoothBus: Hashable, Sendable {
    /// The system bus: `DBUS_SYSTEM_BUS_ADDRESS`, else the usual socket.
    case system
    case session
    /// A bus in D-Bus's syntax, such as that of a simulator: `unix:path=/tmp/gattherd-sim-Zx81aB/bus`.
    case address(String)

    /// The address of the bus, for a private connection to it.
    package var location: DBusAddress {
        switch self {
        case .system: .system
        case .session: .session
        case .address(let text): .address(text)
        }
    }
}

extension Central {
    /// A central on this machine's bluetoothd; it works while ``Central/run()`` runs.
    public static func system(_ configuration: Configuration = Configuration(), log: Log = .silent) -> Central {
        onBus(.system, configuration, log: log)
    }

    /// A central on the bluetoothd of `bus`; it works while ``Central/run()`` runs.
    public static func onBus(
        _ bus: BluetoothBus,
        _ configuration: Configuration = Configuration(),
        log: Log = .silent
    ) -> Central {
        var limits = BlueZCentral.Limits()
        // Each operation has the deadline of its caller.
        limits.attribute = .seconds(3600)
        let backend = BlueZCentral(bus: bus.location, limits: limits, log: log)
        return Central(backend: backend, configuration: configuration, log: log)
    }
}

/// Runs a central on BlueZ for as long as `body` runs, and returns its value.
///
///     try await withCentral { central in
///         try await central.waitUntilReady()
///         …
///     }
///
/// When it returns, all activity of the central has ended: scans, subscriptions, and links unless
/// ``Central/Configuration/keepsLinks`` is set.
///
/// - Parameters:
///   - bus: The bus of bluetoothd.
///   - configuration: The adapter, deadlines and the policy for lost links.
///   - log: Called with each log entry: problems at `warning`, changes of connections at `info`, operations with their
///     duration and result at `debug`, their bytes at `trace`.
///   - body: The work with the central.
/// - Returns: The value of `body`.
/// - Throws: The error of `body`.
public func withCentral<Value, Failure: Error>(
    on bus: BluetoothBus = .system,
    configuration: Central.Configuration = Central.Configuration(),
    log: Log = .silent,
    _ body: (Central) async throws(Failure) -> Value
) async throws(Failure) -> Value {
    try await Central.onBus(bus, configuration, log: log).run(body)
}
