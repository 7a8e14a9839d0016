public import GattherdLog
public import GattherdMachines

/// Counters of recovery steps for adapters, and of losses on links that were up.
public struct RecoveryCounters: Sendable {
    public let discoveryRestarts = Counter("discovery_restarts_total")
    public let sessionRenewals = Counter("bus_session_renewals_total")
    public let powerCycles = Counter("adapter_power_cycles_total")
    /// Probes sent to silent peripherals.
    public let silenceProbes = Counter("silence_probes_total")
    /// GATT attributes ignored because their peripheral has too many.
    public let ignoredAttributes = Counter("gatt_attributes_ignored_total")
    /// Streams whose subscription ended or was renewed while the link was up: values may be missing.
    public let interruptions = Counter("subscriptions_interrupted_total")

    public subscript(step: RecoveryLadder.Step) -> Counter {
        switch step {
        case .restartDiscovery: discoveryRestarts
        case .newSession: sessionRenewals
        case .powerCycle: powerCycles
        }
    }
}
