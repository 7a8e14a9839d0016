import GattherdMQTT
import GattherdModel
import GattherdSync

/// The states and descriptions of the gateway's devices, each in a retained message.
struct CurrentDevices {
    private let context: DeliveryContext
    private var statuses: [String: LinkStatus] = [:]
    private var descriptions: [String: DeviceDescription] = [:]
    /// The last availability of each device that was published in this session.
    private var availabilities: [String: Bool] = [:]

    init(_ context: DeliveryContext) {
        self.context = context
    }

    func contains(_ device: String) -> Bool { statuses[device] != nil }

    /// True if a device carries its state or its description on the topic.
    func uses(_ topic: String) -> Bool {
        if let device = context.topics.device(topic), statuses[device] != nil {
            return [context.topics.connection(device), context.topics.availability(device)].contains(topic)
        }
        return descriptions.values.contains { context.home.topic(of: $0.address) == topic }
    }

    /// Queues the states of all devices at the start of a session.
    mutating func startSession(_ queue: inout PublishQueue) {
        availabilities = [:]
        for device in statuses.keys.sorted() {
            queue.append(.connection(device: device))
            queue.append(.availability(device: device))
        }
        queueDescriptions(&queue)
    }

    mutating func update(_ status: LinkStatus, _ queue: inout PublishQueue) {
        let device = status.device
        statuses[device] = status
        queue.append(.connection(device: device))
        if availabilities[device] != status.isOnline { queue.append(.availability(device: device)) }
    }

    mutating func describe(_ description: DeviceDescription, _ queue: inout PublishQueue) {
        let device = description.device
        guard context.settings.homeAssistant.isDiscoverable, descriptions[device] != description else { return }
        descriptions[device] = description
        queue.append(.description(device: device))
    }

    /// Removes a device and clears its description.
    mutating func remove(_ device: String, _ queue: inout PublishQueue) {
        statuses[device] = nil
        availabilities[device] = nil
        if let description = descriptions.removeValue(forKey: device) {
            queue.append(.clear(topic: context.home.topic(of: description.address)))
        }
    }

    /// Queues all descriptions, for example after Home Assistant's start.
    func queueDescriptions(_ queue: inout PublishQueue) {
        for device in descriptions.keys.sorted() { queue.append(.description(device: device)) }
    }

    /// Queues all availabilities, which are offline at the end of a session.
    func queueAvailabilities(_ queue: inout PublishQueue) {
        for device in statuses.keys.sorted() { queue.append(.availability(device: device)) }
    }
}

/// The payloads.
extension CurrentDevices {
    func connection(of device: String) -> [UInt8]? {
        statuses[device].map { status in JSONWriter.bytes { status.writeJSON(to: &$0) } }
    }

    /// Returns the availability to be published now, and records it.
    mutating func availability(of device: String, isLeaving: Bool) -> [UInt8]? {
        guard let status = statuses[device] else { return nil }
        let isOnline = status.isOnline && !isLeaving
        availabilities[device] = isOnline
        return Array((isOnline ? "online" : "offline").utf8)
    }

    /// Records that the broker does not have the last published availability.
    mutating func availabilityRefused(of device: String) {
        availabilities[device] = nil
    }

    /// The topic of a device's description.
    func descriptionTopic(of device: String) -> String? {
        descriptions[device].map { context.home.topic(of: $0.address) }
    }

    /// The description without the controls that MQTT may not set.
    func description(of device: String) -> [UInt8]? {
        guard var description = descriptions[device] else { return nil }
        let permissions = context.permissions.withLock { $0 }
        description.controls.removeAll { !permissions.allows($0.name, of: device) }
        return context.home.payload(for: description)
    }
}
