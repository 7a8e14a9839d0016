import GattherdMQTT
import GattherdModel
import GattherdSync

/// What Home Assistant knows of our devices, and what the broker keeps of those that were ours.
extension MQTTDelivery {
    func note(_ description: DeviceDescription) {
        guard settings.homeAssistant.isDiscoverable, descriptions[description.device] != description else { return }
        descriptions[description.device] = description
        tell(.discovery(device: description.device))
    }

    /// What is shown of a device depends on how it is published.
    func adopt(_ publishing: PublishingRules, tellsAnew: Bool) {
        guard tellsAnew || self.publishing != publishing else { return }
        self.publishing = publishing
        for device in descriptions.keys.sorted() { tell(.discovery(device: device)) }
    }

    /// What may be set is all that is shown as settable.
    func permitted(_ description: DeviceDescription) -> DeviceDescription {
        let permissions = permissions.withLock { $0 }
        var description = description
        description.controls.removeAll { !permissions.allows($0.name, of: description.device) }
        return description
    }

    /// Home Assistant says that it has started; what it missed is told again.
    func welcome(_ message: BrokerMessage) {
        guard !message.isRetained, message.payload == Array("online".utf8) else { return }
        for device in descriptions.keys.sorted() { outbox.append(.discovery(device: device)) }
    }

    /// Something that the broker retains; clears it when it is of a device that is not ours any more.
    func inspect(_ message: BrokerMessage) {
        guard message.isRetained, message.length > 0 else { return }
        if message.topic.hasPrefix(home.prefix), let device = home.device(in: message.payload) {
            if !isCurrent(message.topic, of: device) { outbox.append(.cleared(topic: message.topic)) }
        } else if let device = topics.device(message.topic) {
            if removed.contains(device) || isReadingOfPredecessor(message.topic, device) {
                outbox.append(.cleared(topic: message.topic))
            } else if let enrolled, enrolled[device] == nil, Slug.isValid(device) {
                // A broker may retain any number of them: the rest is removed by the next sweep.
                guard outbox.hasCleanUpRoom else { return outbox.dropCleanUp() }
                forget(device)
            }
        }
    }

    private func isReadingOfPredecessor(_ topic: String, _ device: String) -> Bool {
        guard link?.successors.contains(device) == true else { return false }
        return ![topics.connection(device), topics.availability(device)].contains(topic)
    }

    /// The device is ours, and had the same address when it was described.
    private func isCurrent(_ topic: String, of device: String) -> Bool {
        guard settings.homeAssistant.isDiscoverable, let address = enrolled?[device] else { return false }
        return topic == home.topic(of: address)
    }
}
