public import GattherdMachines

/// How the readings of a stream are published.
public struct StreamPublishing: Hashable, Sendable {
    /// Which of them.
    public var policy = DeliveryPolicy()
    /// QoS 1; else QoS 0: the cursor then passes what was written to the connection, and a broker that stops then
    /// loses it.
    public var isAcknowledged = true
    /// The broker keeps the newest for those who subscribe later.
    public var isRetained = true
    /// Each metric goes to a topic of its own as well, as a bare value with QoS 0.
    public var hasScalars = false
    /// MQTT 5: how long a broker keeps one for a subscriber who is away.
    public var expiry: Duration?

    public init() {}

    /// A broker counts in seconds.
    var expirySeconds: UInt32? { expiry.map { UInt32(clamping: max(1, $0.components.seconds)) } }
}

/// How each stream's readings are published.
public struct PublishingRules: Hashable, Sendable {
    /// The rules for a device.
    public struct Device: Hashable, Sendable {
        public var all: StreamPublishing
        public var streams: [String: StreamPublishing]

        public init(all: StreamPublishing, streams: [String: StreamPublishing] = [:]) {
            self.all = all
            self.streams = streams
        }
    }

    /// For devices without rules of their own.
    public var all = StreamPublishing()
    public var devices: [String: Device] = [:]

    public init() {}

    subscript(device: String, stream: String) -> StreamPublishing {
        guard !devices.isEmpty, let rules = devices[device] else { return all }
        return rules.streams[stream] ?? rules.all
    }

    /// Every reading of every stream is published.
    var isEverything: Bool {
        all.policy.isEverything
            && devices.values.allSatisfy { device in
                device.all.policy.isEverything && device.streams.values.allSatisfy { $0.policy.isEverything }
            }
    }
}
