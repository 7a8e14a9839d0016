/// The publishing of readings: one section `publish`, or several combined.
package struct PublishSettings: Hashable, Sendable {
    package enum QoS: String, Hashable, Sendable, CaseIterable {
        case zero = "0"
        case one = "1"
    }

    /// True if only readings that differ from the last published one are published.
    package var isOnChange: Bool?
    /// The largest difference of numbers that count as equal.
    package var deadband: Double?
    /// Deadbands by metric.
    package var deadbands: [Located<String>: Double] = [:]
    package var minimumInterval: Duration?
    /// The time after which an unchanged reading is published again.
    package var heartbeat: Duration?
    package var qos: QoS?
    package var retains: Bool?
    /// True if each metric also has a topic of its own.
    package var hasScalars: Bool?
    /// The time for which the broker keeps a reading for an absent subscriber.
    package var expiry: Duration?

    package init() {}

    /// Returns this section with the values of a wider one where it has none.
    package func refining(_ wider: PublishSettings) -> PublishSettings {
        var settings = self
        settings.isOnChange = isOnChange ?? wider.isOnChange
        settings.deadband = deadband ?? wider.deadband
        // A deadband for all metrics also replaces those that the wider section has for some.
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
package struct DevicePublishSettings: Hashable, Sendable {
    package var all = PublishSettings()
    /// The settings by stream.
    package var streams: [Located<String>: PublishSettings] = [:]

    package init() {}
}
