/// How readings are published: what one section `publish` says, or what several say together.
public struct PublishSettings: Hashable, Sendable {
    public enum QoS: String, Hashable, Sendable, CaseIterable {
        case zero = "0"
        case one = "1"
    }

    /// Only readings that differ from the last one that was published.
    public var isOnChange: Bool?
    /// Numbers that differ by no more than this are the same.
    public var deadband: Double?
    /// Other deadbands, by metric.
    public var deadbands: [Located<String>: Double] = [:]
    public var minimumInterval: Duration?
    /// After this time a reading is published although it says nothing new.
    public var heartbeat: Duration?
    public var qos: QoS?
    public var retains: Bool?
    /// Each metric has a topic of its own as well.
    public var hasScalars: Bool?
    /// How long a broker keeps a reading for a subscriber who is away.
    public var expiry: Duration?

    public init() {}

    /// What this section says, and where it says nothing, what the wider one does.
    public func refining(_ wider: PublishSettings) -> PublishSettings {
        var settings = self
        settings.isOnChange = isOnChange ?? wider.isOnChange
        settings.deadband = deadband ?? wider.deadband
        // One for all metrics is also for those that the wider section names.
        if deadband == nil { settings.deadbands.merge(wider.deadbands) { own, _ in own } }
        settings.minimumInterval = minimumInterval ?? wider.minimumInterval
        settings.heartbeat = heartbeat ?? wider.heartbeat
        settings.qos = qos ?? wider.qos
        settings.retains = retains ?? wider.retains
        settings.hasScalars = hasScalars ?? wider.hasScalars
        settings.expiry = expiry ?? wider.expiry
        return settings
    }
}

/// The section `publish` of a device.
public struct DevicePublishSettings: Hashable, Sendable {
    public var all = PublishSettings()
    /// By stream.
    public var streams: [Located<String>: PublishSettings] = [:]

    public init() {}
}
