import GattherdMQTT
import GattherdModel

/// The removal of retained messages of devices that the gateway no longer has.
///
/// The broker alone knows which messages it retains. A subscription finds the availability of every device, and one for
/// each removed device finds the rest.
struct FormerDevices {
    /// The search for the retained messages of one removed device.
    private struct Search {
        var isAnswered = false
        /// True if a message or an answer has arrived since the last ``finish(_:)``.
        var isBusy = true
    }

    /// The number of removed devices whose late messages are cleared as well.
    static let maximum = 500

    private let topics: Topics
    private let home: HomeAssistant
    private let isDiscoverable: Bool
    private let hasDescriptions: Bool
    private let hasLeases: Bool
    /// The devices removed lately, the newest last; at most ``maximum``.
    private(set) var removed: [String] = []
    /// The removed devices whose availability is not cleared yet.
    private var unfinished: [String: Search] = [:]
    /// Devices with a removed device's name, whose old messages could not be cleared for lack of a session.
    private var successors: Set<String> = []
    /// Successors in this session; readings that the broker still retains belong to the removed device.
    private var sessionSuccessors: Set<String> = []
    /// The addresses of all devices, by name; `nil` until they are known.
    private var enrolled: [String: String]?
    /// The discovery topics of all devices, also of those that are not described yet.
    private var awaited: Set<String> = []

    init(_ topics: Topics, _ home: HomeAssistant, isDiscoverable: Bool, hasDescriptions: Bool, hasLeases: Bool) {
        self.topics = topics
        self.home = home
        self.isDiscoverable = isDiscoverable
        self.hasDescriptions = hasDescriptions
        self.hasLeases = hasLeases
    }

    /// Queues the subscriptions and removals at the start of a session.
    mutating func startSession(_ queue: inout PublishQueue) {
        unfinished = [:]
        for device in removed { clear(device, &queue) }
        for device in successors {
            queue.append(.subscribeToRemoved(device: device))
            queue.append(.unsubscribeFromRemoved(device: device))
        }
        sessionSuccessors = successors
        successors = []
        if enrolled != nil { queue.append(.subscribeToRetained) }
    }

    mutating func enrol(_ addresses: [String: String], _ queue: inout PublishQueue) {
        // If devices were only added, the broker retains nothing out of date.
        let isDue = enrolled.map { $0.contains { addresses[$0.key] != $0.value } } ?? true
        enrolled = addresses
        awaited = isDiscoverable ? Set(addresses.values.map { home.topic(of: $0) }) : []
        if isDue { queue.append(.subscribeToRetained) }
    }

    /// Records that a device exists; with a removed device's name, the broker may still send messages of the old one.
    mutating func recordStatus(of device: String, _ queue: inout PublishQueue) {
        guard removed.contains(device) else { return }
        endRemoval(of: device, &queue)
        if queue.isOpen { sessionSuccessors.insert(device) } else { successors.insert(device) }
    }

    mutating func remove(_ device: String, _ queue: inout PublishQueue) {
        removed.removeAll { $0 == device }
        removed.append(device)
        if removed.count > Self.maximum {
            let oldest = removed[0]
            if unfinished[oldest] != nil { queue.append(.clear(topic: topics.availability(oldest))) }
            endRemoval(of: oldest, &queue)
        }
        successors.remove(device)
        sessionSuccessors.remove(device)
        clear(device, &queue)
    }

    private mutating func endRemoval(of device: String, _ queue: inout PublishQueue) {
        guard let index = removed.firstIndex(of: device) else { return }
        removed.remove(at: index)
        unfinished[device] = nil
        queue.append(.unsubscribeFromRemoved(device: device))
    }

    /// Clears the retained messages of a removed device.
    ///
    /// Further messages are cleared as the broker sends them. The availability goes last, by ``finish(_:)``: another
    /// run finds the device by it.
    private mutating func clear(_ device: String, _ queue: inout PublishQueue) {
        guard queue.isOpen else { return }
        // The next search finds the device again.
        guard queue.hasCleanUpRoom else {
            queue.dropCleanUp()
            return removed.removeAll { $0 == device }
        }
        unfinished[device] = Search()
        queue.append(.subscribeToRemoved(device: device))
        if hasDescriptions { queue.append(.clear(topic: topics.description(device))) }
        queue.append(.clear(topic: topics.connection(device)))
    }

    /// True while retained messages of a removed device are being searched for.
    var isSearching: Bool { !unfinished.isEmpty }

    /// Records the broker's answer to the search for a device's messages, which follow it.
    ///
    /// If it refuses the search, the messages cannot be found, and the availability is cleared as well.
    mutating func answered(_ device: String) {
        unfinished[device]?.isAnswered = true
        unfinished[device]?.isBusy = true
    }

    /// Clears the availability of devices for which the broker has sent everything; called at intervals.
    mutating func finish(_ queue: inout PublishQueue) {
        guard queue.isCleanUpDone else { return }
        for (device, search) in unfinished {
            unfinished[device]?.isBusy = false
            guard search.isAnswered, !search.isBusy, queue.hasCleanUpRoom else { continue }
            unfinished[device] = nil
            queue.append(.clear(topic: topics.availability(device)))
        }
    }

    /// Clears a received retained message of a former device.
    ///
    /// - Returns: A device that must be removed, because it is not enrolled.
    mutating func receive(_ message: BrokerMessage, _ queue: inout PublishQueue) -> String? {
        guard message.isRetained, message.length > 0 else { return nil }
        if message.topic.hasPrefix(home.prefix + "/") {
            if isUnwantedDiscovery(message) { queue.append(.clear(topic: message.topic)) }
        } else if let device = topics.device(message.topic) {
            // The search for topics of this device is not over.
            if unfinished[device] != nil, message.topic == topics.availability(device) { return nil }
            unfinished[device]?.isBusy = true
            if removed.contains(device) || isReadingOfPredecessor(message.topic, device)
                || isUnwantedDescription(message.topic, device) || isUnwantedLease(message, device)
            {
                queue.append(.clear(topic: message.topic))
            } else if let enrolled, enrolled[device] == nil, Slug.isValid(device) {
                // A broker may retain any number of them; the next search finds the rest.
                guard queue.hasCleanUpRoom else {
                    queue.dropCleanUp()
                    return nil
                }
                return device
            }
        }
        return nil
    }

    private func isReadingOfPredecessor(_ topic: String, _ device: String) -> Bool {
        guard sessionSuccessors.contains(device) else { return false }
        return !topics.states(device).contains(topic)
    }

    /// True for a description from the time before `mqtt.descriptions` was turned off.
    private func isUnwantedDescription(_ topic: String, _ device: String) -> Bool {
        !hasDescriptions && enrolled?[device] != nil && topic == topics.description(device)
    }

    /// True for a lease from the time before `fleet.leases` was turned off; a stream may have the same topic.
    private func isUnwantedLease(_ message: BrokerMessage, _ device: String) -> Bool {
        guard !hasLeases, enrolled?[device] != nil, message.topic == topics.lease(device) else { return false }
        return message.payload.starts(with: #"{"state":"#.utf8)
    }

    /// True for a discovery payload with this base topic that describes neither the gateway nor one of its devices.
    ///
    /// The payload of a renamed device stays until the device is described again: Home Assistant would delete its
    /// entities, with all settings that people made there.
    private func isUnwantedDiscovery(_ message: BrokerMessage) -> Bool {
        if message.topic == home.gatewayTopic { return !isDiscoverable && home.isGateway(message.payload) }
        // A renamed gateway has also left its own payload.
        if home.isGateway(message.payload) { return true }
        return home.device(in: message.payload) != nil && !isAwaited(message.topic)
    }

    /// True if the topic belongs to a device of the gateway, even if it is not described yet.
    func isAwaited(_ topic: String) -> Bool { awaited.contains(topic) }
}
