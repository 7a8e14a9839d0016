extension DaemonStatus {
    /// The lease of a device: the gateway that owns it, and the bids of all gateways.
    public struct Lease: Codable, Hashable, Sendable {
        /// A gateway's bid.
        public struct Bid: Codable, Hashable, Sendable {
            public var gateway: String
            /// `linked`, `held`, `steady`, `heard`, `silent` or `gone`.
            public var standing: String
            /// In dBm.
            public var rssi: Int?
            /// The reason why the gateway may not own the device.
            public var problem: String?

            public init(gateway: String, standing: String, rssi: Int?, problem: String?) {
                (self.gateway, self.standing, self.rssi, self.problem) = (gateway, standing, rssi, problem)
            }
        }

        /// The state at this gateway: `owner`, `standby`, `claiming`, `releasing` or `alone`.
        public var state: String
        /// `nil` while no gateway owns the device.
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
