public import GattherdGATT
public import GattherdMachines
public import GattherdModel

extension Supervisor {
    /// The supervisor's limits and policies.
    public struct Settings: Sendable {
        public var connectTimeout: Duration
        public var resolveTimeout: Duration
        public var keepsLinksOnStop: Bool
        public var policy: SupervisorMachine.Policy
        /// The usable adapters; `nil` for all.
        public var adapters: Set<BluetoothAddress>?
        /// The leases of all devices; `nil` without leases: then every device is connected.
        public var leases: LeaseBoard?
        /// The policy for silent streams.
        public var silence = SilenceWatch.Policy()
        /// The pause between attempts to subscribe to what another program has reserved.
        public var reservedRetry = Duration.seconds(10)
        /// Makes a profile from characteristics that no profile serves; `nil` if that is impossible.
        ///
        /// The second argument contains the stream names in use.
        public var describe: (@Sendable ([DescribedCharacteristic], Set<String>) -> SelfDescription?)?

        /// Returns the hash of the upper half of a private address with a key; `nil` if it cannot be computed.
        public var addressHash: (@Sendable (IdentityKey, UInt32) -> UInt32?)?

        public init(
            connectTimeout: Duration = .seconds(20),
            resolveTimeout: Duration = .seconds(30),
            keepsLinksOnStop: Bool = false,
            policy: SupervisorMachine.Policy = .init(),
            adapters: Set<BluetoothAddress>? = nil
        ) {
            self.connectTimeout = connectTimeout
            self.resolveTimeout = resolveTimeout
            self.keepsLinksOnStop = keepsLinksOnStop
            self.policy = policy
            self.adapters = adapters
        }

        /// The time that the central may take beyond `connectTimeout`, to cancel an attempt at BlueZ.
        private static let connectGrace = Duration.seconds(15)
        /// The time that a session may take beyond `resolveTimeout`, for pairing, subscriptions and reads.
        private static let sessionGrace = Duration.seconds(150)

        /// The machine's policy.
        ///
        /// Its limits exceed those of the central, because they detect missing replies.
        var machinePolicy: SupervisorMachine.Policy {
            var policy = policy
            policy.link.needsAdmission = leases != nil
            policy.link.connectLimit = max(policy.link.connectLimit, connectTimeout + Self.connectGrace)
            policy.link.sessionLimit = max(policy.link.sessionLimit, resolveTimeout + Self.sessionGrace)
            return policy
        }

        func mayUse(_ adapter: BluetoothAddress) -> Bool {
            adapters?.contains(adapter) ?? true
        }
    }
}
