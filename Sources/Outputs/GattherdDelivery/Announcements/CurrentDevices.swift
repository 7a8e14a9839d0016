import GattherdMQTT
import GattherdModel
import GattherdSync

/// The states and descriptions of the gateway's devices, each in a retained message.
struct CurrentDevices {
    private let context: DeliveryContext
    private var statuses: [String: LinkStatus] = [:]
    private var descriptions: [String: DeviceDescription] = [:]
    private var leases: [String: DeviceLease] = [:]
    private var facts = DeviceFacts()
    /// The last availability of each device that was published in this session.
    private var availabilities: [String: Bool] = [:]

    init(_ context: DeliveryContext) {
        self.context = context
    }

    func contains(_ device: String) -> Bool { statuses[device] != nil }

    /// True if a device carries its state or its description on the topic.
    func uses(_ topic: String) -> Bool {
        if let device = context.topics.device(topic) {
            if topic == context.topics.description(device) { return hasDescription(device) }
            if topic == context.topics.lease(device) { return leases[device] != nil }
            return statuses[device] != nil && context.topics.states(device).contains(topic)
        }
        guard context.settings.homeAssistant.isDiscoverable else { return false }
        return descriptions.values.contains { context.home.topic(of: $0.address) == topic }
    }

    /// Queues the states of all devices at the start of a session.
    mutating func startSession(_ queue: inout PublishQueue) {
        availabilities = [:]
        for device in statuses.keys.sorted() {
            queue.append(.connection(device: device))
            queue.append(.availability(device: device))
        }
        for device in leases.keys.sorted() { queue.append(.lease(device: device)) }
        queueDescriptions(&queue)
    }

    private func hasDescription(_ device: String) -> Bool {
        context.settings.publishesDescriptions && descriptions[device] != nil
    }

    mutating func update(_ status: LinkStatus, _ queue: inout PublishQueue) {
        let device = status.device
        statuses[device] = status
        queue.append(.connection(device: device))
        if availabilities[device] != status.isOnline { queue.append(.availability(device: device)) }
    }

    mutating func update(_ lease: DeviceLease, _ queue: inout PublishQueue) {
        guard leases[lease.device] != lease else { return }
        leases[lease.device] = lease
        queue.append(.lease(device: lease.device))
    }

    mutating func describe(_ description: DeviceDescription, _ queue: inout PublishQueue) {
        let device = description.device
        guard descriptions[device] != description else { return }
        descriptions[device] = description
        queueDescription(device, &queue)
    }

    /// Records the facts that a device reports about itself in a reading, and queues the changed description.
    mutating func record(_ reading: JournalReading, _ queue: inout PublishQueue) {
        let device = reading.stream.device
        guard facts.record(reading), descriptions[device] != nil else { return }
        queueDescription(device, &queue)
    }

    /// Removes a device and clears its discovery payload.
    mutating func remove(_ device: String, _ queue: inout PublishQueue) {
        statuses[device] = nil
        availabilities[device] = nil
        leases[device] = nil
        facts.remove(device)
        let description = descriptions.removeValue(forKey: device)
        if let description, context.settings.homeAssistant.isDiscoverable {
            queue.append(.clear(topic: context.home.topic(of: description.address)))
        }
    }

    /// Queues all descriptions and discovery payloads.
    func queueDescriptions(_ queue: inout PublishQueue) {
        if context.settings.homeAssistant.isDiscoverable { queue.append(.gatewayDiscovery) }
        for device in descriptions.keys.sorted() { queueDescription(device, &queue) }
    }

    /// Queues all discovery payloads, for example after Home Assistant's start.
    func queueDiscovery(_ queue: inout PublishQueue) {
        guard context.settings.homeAssistant.isDiscoverable else { return }
        // Devices refer to the gateway, so it comes first.
        queue.append(.gatewayDiscovery)
        for device in descriptions.keys.sorted() { queue.append(.discovery(device: device)) }
    }

    private func queueDescription(_ device: String, _ queue: inout PublishQueue) {
        if context.settings.publishesDescriptions { queue.append(.description(device: device)) }
        if context.settings.homeAssistant.isDiscoverable { queue.append(.discovery(device: device)) }
    }

    /// Queues all availabilities, which are offline at the end of a session.
    func queueAvailabilities(_ queue: inout PublishQueue) {
        for device in statuses.keys.sorted() { queue.append(.availability(device: device)) }
    }
}

/// Encodes the payloads of a device's topics.
extension CurrentDevices {
    func connection(of device: String) -> [UInt8]? {
        statuses[device].map { status in JSONWriter.bytes { status.writeJSON(to: &$0) } }
    }

    func lease(of device: String) -> [UInt8]? { leases[device]?.json }

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

    /// The topic of a device's discovery payload.
    func discoveryTopic(of device: String) -> String? {
        descriptions[device].map { context.home.topic(of: $0.address) }
    }

    func discovery(of device: String) -> [UInt8]? {
        permitted(device).map { description in
            let presentation = context.presentation.withLock { $0 }
            return context.home.payload(
                for: description,
                batched: batched(description),
                presentation: presentation,
                facts: facts[device]
            )
        }
    }

    func description(of device: String) -> [UInt8]? {
        guard hasDescription(device) else { return nil }
        return permitted(device).map { $0.payload(topics: context.topics, batched: batched($0), facts[device]) }
    }

    /// The streams whose readings are published as arrays.
    private func batched(_ description: DeviceDescription) -> Set<String> {
        let rules = context.publishing.withLock { $0 }
        return Set(description.streams.map(\.name).filter { rules[description.device, $0].batch != nil })
    }

    /// The description without the controls that MQTT may not set.
    private func permitted(_ device: String) -> DeviceDescription? {
        guard var description = descriptions[device] else { return nil }
        let permissions = context.permissions.withLock { $0 }
        description.controls.removeAll { !permissions.allows($0.name, of: device) }
        return description
    }
}
