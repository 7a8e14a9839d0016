public import GattherdMachines

/// The publishing rules of a stream.
public struct StreamPublishing: Hashable, Sendable {
    /// The policy that selects readings.
    public var policy = DeliveryPolicy()
    /// True for QoS 1.
    ///
    /// With QoS 0 the cursor passes a reading once it is written; a broker that stops then loses it.
    public var isAcknowledged = true
    /// True if the broker keeps the newest reading for later subscribers.
    public var isRetained = true
    /// True if each metric also has a topic of its own, as a bare value with QoS 0.
    public var hasScalars = false
    /// MQTT 5: the time for which a broker keeps a reading for an absent subscriber.
    public var expiry: Duration?

    public init() {}

    /// The expiry in whole seconds, as MQTT encodes it.
    var expirySeconds: UInt32? { expiry.map { UInt32(clamping: max(1, $0.components.seconds)) } }
}

/// The publishing rules of all streams.
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

    /// The rules for devices without rules of their own.
    public var all = StreamPublishing()
    public var devices: [String: Device] = [:]

    public init() {}

    subscript(device: String, stream: String) -> StreamPublishing {
        guard !devices.isEmpty, let rules = devices[device] else { return all }
        return rules.streams[stream] ?? rules.all
    }

    /// True if every reading of every stream is published.
    var isEverything: Bool {
        all.policy.isEverything
            && devices.values.allSatisfy { device in
                device.all.policy.isEverything && device.streams.values.allSatisfy { $0.policy.isEverything }
            }
    }
}
