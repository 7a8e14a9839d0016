import GattherdMQTT
import GattherdModel
import GattherdSync

/// The descriptions for Home Assistant, and the removal of retained messages of former devices.
extension MQTTDelivery {
    func note(_ description: DeviceDescription) {
        guard settings.homeAssistant.isDiscoverable, descriptions[description.device] != description else { return }
        descriptions[description.device] = description
        tell(.discovery(device: description.device))
    }

    /// Applies new publishing rules and publishes all descriptions again, as they depend on the rules.
    func adopt(_ publishing: PublishingRules, tellsAnew: Bool) {
        guard tellsAnew || self.publishing != publishing else { return }
        self.publishing = publishing
        for device in descriptions.keys.sorted() { tell(.discovery(device: device)) }
    }

    /// The description without the controls that MQTT may not set.
    func permitted(_ description: DeviceDescription) -> DeviceDescription {
        let permissions = permissions.withLock { $0 }
        var description = description
        description.controls.removeAll { !permissions.allows($0.name, of: description.device) }
        return description
    }

    /// Publishes all descriptions again after Home Assistant's start.
    func welcome(_ message: BrokerMessage) {
        guard !message.isRetained, message.payload == Array("online".utf8) else { return }
        for device in descriptions.keys.sorted() { outbox.append(.discovery(device: device)) }
    }

    /// Clears a retained message if it belongs to a former device.
    func inspect(_ message: BrokerMessage) {
        guard message.isRetained, message.length > 0 else { return }
        if message.topic.hasPrefix(home.prefix), let device = home.device(in: message.payload) {
            if !isCurrent(message.topic, of: device) { outbox.append(.cleared(topic: message.topic)) }
        } else if let device = topics.device(message.topic) {
            if removed.contains(device) || isReadingOfPredecessor(message.topic, device) {
                outbox.append(.cleared(topic: message.topic))
            } else if let enrolled, enrolled[device] == nil, Slug.isValid(device) {
                // A broker may retain any number of them; the next sweep removes the rest.
                guard outbox.hasCleanUpRoom else { return outbox.dropCleanUp() }
                forget(device)
            }
        }
    }

    private func isReadingOfPredecessor(_ topic: String, _ device: String) -> Bool {
        guard link?.successors.contains(device) == true else { return false }
        return ![topics.connection(device), topics.availability(device)].contains(topic)
    }

    /// True if the device is enrolled with the address of its description.
    private func isCurrent(_ topic: String, of device: String) -> Bool {
        guard settings.homeAssistant.isDiscoverable, let address = enrolled?[device] else { return false }
        return topic == home.topic(of: address)
    }
}
