extension DaemonStatus {
    /// The leases of this gateway together.
    public struct Fleet: Codable, Hashable, Sendable {
        /// The leases that the gateway has now.
        public var held = 0
        /// The number of leases acquired since the start.
        public var claims: UInt64 = 0
        /// The devices that it gave up or lost since the start, by cause.
        public var handovers: [String: UInt64] = [:]
        /// The controls that were refused since the start, by reason.
        public var refusedControls: [String: UInt64] = [:]
        /// The seconds since the centre answered, which renews leases; `nil` before the first answer.
        public var answerAge: Double?
        /// The reason why the centre does not answer.
        public var error: String?

        public init() {}

        enum CodingKeys: String, CodingKey {
            case held, claims, handovers, error
            case refusedControls = "refused_controls"
            case answerAge = "answer_age"
        }
    }

    /// The lease of a device: the gateway that owns it, and the bids of all gateways.
    public struct Lease: Codable, Hashable, Sendable {
        /// A gateway's bid.
        public struct Bid: Codable, Hashable, Sendable {
            public var gateway: String
            /// The state of the device at that gateway: `linked`, `held`, `steady`, `heard`, `silent` or `gone`.
            public var standing: String
            /// The signal strength in dBm.
            public var rssi: Int?
            /// The reason why the gateway may not own the device.
            public var problem: String?

            public init(gateway: String, standing: String, rssi: Int?, problem: String?) {
                (self.gateway, self.standing, self.rssi, self.problem) = (gateway, standing, rssi, problem)
            }
        }

        /// The state at this gateway: `owner`, `standby`, `claiming`, `releasing` or `alone`.
        public var state: String
        /// The owner; `nil` while no gateway owns the device.
        public var owner: String?
        public var epoch: Int64
        /// The reason of the last decision.
        public var reason: String
        public var bids: [Bid]
        /// The reason why the centre does not answer.
        public var problem: String?

        public init(state: String, epoch: Int64, reason: String) {
            (self.state, self.epoch, self.reason) = (state, epoch, reason)
            bids = []
        }
    }
}
