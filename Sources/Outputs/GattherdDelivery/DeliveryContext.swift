import GattherdMachines
import GattherdModel
import GattherdSync

/// The constants that all parts of a delivery share, with its event loop and clock.
final class DeliveryContext: Sendable {
    let settings: DeliverySettings
    let topics: Topics
    let home: HomeAssistant
    let counters: DeliveryCounters
    let logger: DeliveryLogger
    /// The controls that MQTT may set; a reload replaces them.
    let permissions: Locked<ControlPermissions>
    /// The publishing rules; a reload replaces them.
    let publishing: Locked<PublishingRules>
    /// The names and alerts of devices; a reload replaces them.
    let presentation: Locked<Presentation>
    let time = LoopTime(EventLoop(name: "mqtt"))

    init(_ settings: DeliverySettings, _ counters: DeliveryCounters, _ logger: DeliveryLogger) {
        self.settings = settings
        self.counters = counters
        self.logger = logger
        permissions = Locked(settings.permissions)
        publishing = Locked(settings.publishing)
        presentation = Locked(settings.presentation)
        topics = Topics(base: settings.baseTopic)
        home = HomeAssistant(
            topics: topics,
            gateway: settings.gateway,
            prefix: settings.homeAssistant.prefix,
            version: settings.homeAssistant.version,
            configurationURL: settings.homeAssistant.configurationURL
        )
    }

    var loop: EventLoop { time.loop }
    /// The time since the creation; time in which the system is suspended does not count.
    var now: Duration { time.now }
}
