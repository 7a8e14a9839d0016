import GattherdMQTT
import GattherdModel

/// The removal of retained messages below a base topic that the gateway had before.
///
/// The gateway has left `offline` there. If the state is `online` or becomes so, another gateway has the base topic,
/// and everything stays. The other gateway may start at the same time, so the removal begins later. Devices are found
/// by their availability, so no other tree below the base topic is touched. The discovery payloads of Home Assistant
/// are found by their topics; they have the gateway's former name. The availabilities and the state go last: if the
/// session ends before, the next one finds the rest by them.
struct FormerBase {
    private enum Phase {
        /// The state is not known yet.
        case asking
        /// The state is `offline`; another gateway may be about to start.
        case waiting
        case clearing
        /// The last messages are being cleared.
        case leaving
        /// Another gateway uses the base topic.
        case inUse
    }

    /// The maximum number of devices cleared at once, so that their messages fit into the queue.
    private static let maximumDevices = 300

    private let topics: Topics
    /// Home Assistant's messages of the gateway at this base topic, whatever its name was.
    private let home: HomeAssistant
    private var phase = Phase.asking
    /// The devices found since the last search.
    private var devices: Set<String> = []
    /// The topics of discovery payloads that are being cleared.
    private var discoveries: Set<String> = []
    /// True if a message or an answer has arrived since the last ``finish(_:)``.
    private var isBusy = false
    /// The searches that the broker has not answered.
    private var unanswered: Set<String> = []
    /// True if the broker refuses a search, so that messages cannot be found.
    private var isRefused = false
    /// True if a message was dropped for lack of room.
    private var isIncomplete = false

    init(_ base: String, _ home: HomeAssistant) {
        topics = Topics(base: base)
        self.home = HomeAssistant(topics: topics, gateway: home.gateway, prefix: home.prefix, version: home.version)
    }

    var base: String { topics.base }

    mutating func startSession(_ queue: inout PublishQueue) {
        self = FormerBase(base, home)
        search(topics.state, &queue)
    }

    /// Records the broker's answer to a search; retained messages follow it.
    mutating func answered(_ filter: String, isRefused: Bool) {
        guard unanswered.remove(filter) != nil else { return }
        isBusy = true
        if isRefused { self.isRefused = true }
    }

    private mutating func search(_ filter: String, _ queue: inout PublishQueue) {
        unanswered.insert(filter)
        queue.append(.search(filter: filter))
    }

    /// True for a message below the base topic, and for a discovery payload with topics below it.
    func owns(_ message: BrokerMessage) -> Bool {
        message.topic.hasPrefix(base + "/") || isDiscovery(message)
    }

    private func isDiscovery(_ message: BrokerMessage) -> Bool {
        guard message.topic.hasPrefix(home.prefix + "/") else { return false }
        return home.isGateway(message.payload) || home.device(in: message.payload) != nil
    }

    /// Handles a message of the gateway at the base topic: a retained one, or one of another gateway.
    mutating func receive(_ message: BrokerMessage, _ queue: inout PublishQueue) {
        guard message.length > 0 else { return }
        guard message.isRetained else {
            if showsUse(message) { withdraw(&queue) }
            return
        }
        if isDiscovery(message) {
            if phase == .clearing { clearDiscovery(message.topic, &queue) }
        } else if message.topic == topics.state {
            handleState(message.payload)
        } else if phase == .clearing, let device = topics.device(message.topic), Slug.isValid(device) {
            clear(message.topic, of: device, &queue)
        }
    }

    private mutating func handleState(_ payload: [UInt8]) {
        guard phase == .asking else { return }
        (phase, isBusy) = (payload == Self.offline ? .waiting : .inUse, true)
    }

    private static let offline = Array("offline".utf8)

    /// True for a new message that only a running gateway publishes; a last will may arrive late.
    private func showsUse(_ message: BrokerMessage) -> Bool {
        message.topic == topics.state ? message.payload != Self.offline : topics.isAvailability(message.topic)
    }

    /// Leaves the base topic to another gateway.
    private mutating func withdraw(_ queue: inout PublishQueue) {
        defer { phase = .inUse }
        guard phase == .clearing || phase == .leaving else { return }
        queue.withdrawClears { $0.hasPrefix(base + "/") || discoveries.contains($0) }
        for device in devices.sorted() { queue.append(.endSearch(filter: topics.all(of: device))) }
        queue.append(.endSearch(filter: topics.availabilities))
    }

    private mutating func startClearing(_ queue: inout PublishQueue) {
        phase = .clearing
        for topic in [topics.info, topics.health, topics.alerts] { queue.append(.clear(topic: topic)) }
        search(&queue)
    }

    private mutating func search(_ queue: inout PublishQueue) {
        for filter in [topics.availabilities, home.all] { search(filter, &queue) }
    }

    private mutating func clearDiscovery(_ topic: String, _ queue: inout PublishQueue) {
        isBusy = true
        guard queue.hasCleanUpRoom else { return isIncomplete = true }
        discoveries.insert(topic)
        queue.append(.clear(topic: topic))
    }

    private mutating func clear(_ topic: String, of device: String, _ queue: inout PublishQueue) {
        isBusy = true
        let isKnown = devices.contains(device)
        guard queue.hasCleanUpRoom, isKnown || devices.count < Self.maximumDevices else { return isIncomplete = true }
        if !isKnown {
            devices.insert(device)
            search(topics.all(of: device), &queue)
        }
        if topic != topics.availability(device) { queue.append(.clear(topic: topic)) }
    }

    /// Continues once the broker has answered all searches and sent all messages; called at intervals.
    ///
    /// - Returns: True if nothing is left to be done.
    mutating func finish(_ queue: inout PublishQueue) -> Bool {
        defer { isBusy = false }
        guard !isBusy, unanswered.isEmpty, !isRefused else { return false }
        switch phase {
        case .asking, .inUse:
            queue.append(.endSearch(filter: topics.state))
            return true
        case .waiting:
            startClearing(&queue)
            return false
        case .clearing:
            guard queue.isCleanUpDone else { return false }
            if isIncomplete { searchAgain(&queue) } else { leave(&queue) }
            return false
        case .leaving: return queue.isCleanUpDone
        }
    }

    /// Searches for the messages for which there was no room.
    private mutating func searchAgain(_ queue: inout PublishQueue) {
        if devices.count >= Self.maximumDevices { clearAvailabilities(&queue) }
        for device in devices { search(topics.all(of: device), &queue) }
        search(&queue)
        isIncomplete = false
    }

    private mutating func leave(_ queue: inout PublishQueue) {
        phase = .leaving
        clearAvailabilities(&queue)
        queue.append(.endSearch(filter: topics.availabilities))
        queue.append(.endSearch(filter: topics.state))
        queue.append(.clear(topic: topics.state))
    }

    private mutating func clearAvailabilities(_ queue: inout PublishQueue) {
        for device in devices.sorted() {
            queue.append(.endSearch(filter: topics.all(of: device)))
            queue.append(.clear(topic: topics.availability(device)))
        }
        devices = []
    }
}
