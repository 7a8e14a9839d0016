import GattherdModel
import GattherdSync

/// The queue of messages other than readings: states, responses, events and the removal of retained messages.
///
/// A queued state is only a name. Its value is encoded when it is dequeued, so the newest value is published and
/// nothing accumulates. States are queued during a session only, as each session starts with all of them. Everything
/// that clients or the broker can cause is bounded. The excess is dropped and counted, and clean-up is repeated.
struct PublishQueue {
    enum State: Hashable {
        case info
        case health
        case alerts
        case connection(device: String)
        case availability(device: String)
        case lease(device: String)
        /// The device's description for backends.
        case description(device: String)
        /// The gateway's discovery payload for Home Assistant.
        case gatewayDiscovery
        /// The device's discovery payload for Home Assistant.
        case discovery(device: String)
        case subscribeToRequests
        /// The subscription to Home Assistant's birth message.
        case subscribeToBirth
        /// The subscription to the birth message on its default topic, which the broker's access list may forbid.
        case subscribeToDefaultBirth
        /// The subscription that shows the retained state, and if another client overwrites `online`.
        case subscribeToState
        /// The end of that subscription before the last `offline`, which the broker would otherwise send back.
        case unsubscribeFromState
        /// The subscription that finds retained messages of former devices.
        case subscribeToRetained
        /// The subscription that finds retained messages of a removed device.
        case subscribeToRemoved(device: String)
        case unsubscribeFromRemoved(device: String)
        /// A subscription that finds retained messages below a former base topic, and its end.
        case search(filter: String)
        case endSearch(filter: String)
        /// An empty retained message, which clears the topic.
        case clear(topic: String)
        case online
        case offline

        /// True if the state serves the removal of retained messages, whose number only the broker bounds.
        fileprivate var isCleanUp: Bool {
            switch self {
            case .clear, .subscribeToRemoved, .unsubscribeFromRemoved, .search, .endSearch: true
            default: false
            }
        }
    }

    enum Item {
        case state(State)
        /// One message of a response.
        case response(MQTTResponse)
        case event([UInt8])
    }

    static let maximumEvents = 256
    /// The maximum number of waiting clean-up states.
    static let maximumCleanUps = 1000

    private var states = StateQueue()
    private var cleanUps = StateQueue()
    var responses = ResponseQueue()
    private var events: [[UInt8]] = []
    /// True if clean-up states were dropped because the broker retains too many messages.
    private var isCleanUpIncomplete = false
    /// True if the last message was a state, so that a waiting response comes next.
    private var isResponseNext = false
    /// True during a session.
    private(set) var isOpen = false

    /// True if the states for the removal of one more device fit.
    var hasCleanUpRoom: Bool { cleanUps.count + 5 <= Self.maximumCleanUps }

    /// True if no clean-up state waits.
    var isCleanUpDone: Bool { cleanUps.count == 0 }

    /// Accepts states from now on.
    mutating func startSession() {
        isOpen = true
    }

    /// Appends a state during a session.
    ///
    /// A waiting state moves to the end, as its topic may have been cleared meanwhile.
    mutating func append(_ state: State) {
        guard isOpen else { return }
        guard state.isCleanUp else { return states.append(state) }
        guard cleanUps.count < Self.maximumCleanUps else { return dropCleanUp() }
        cleanUps.append(state)
    }

    /// Records that clean-up was dropped for lack of room.
    mutating func dropCleanUp() {
        isCleanUpIncomplete = true
    }

    /// Removes waiting removals of topics.
    mutating func withdrawClears(of isWithdrawn: (String) -> Bool) {
        cleanUps.remove { state in
            guard case .clear(let topic) = state else { return false }
            return isWithdrawn(topic)
        }
    }

    /// Returns true once when all clean-up that fitted is done and some was dropped.
    mutating func takeIncompleteCleanUp() -> Bool {
        guard isCleanUpIncomplete, cleanUps.count == 0 else { return false }
        isCleanUpIncomplete = false
        return true
    }

    /// Appends an event; returns false if the oldest event was dropped for it.
    mutating func append(_ event: LifecycleEvent) -> Bool {
        events.append(JSONWriter.bytes { $0.event(event) })
        guard events.count > Self.maximumEvents else { return true }
        events.removeFirst()
        return false
    }

    /// Dequeues the next message; states and responses take turns, and `offline` follows all responses.
    ///
    /// - Parameters:
    ///   - isCleanUpAllowed: False while too many packets are in flight for clean-up.
    ///   - isDeferred: True if a state has to wait.
    /// - Returns: The message; `nil` if none can be published now.
    mutating func next(isCleanUpAllowed: Bool, isDeferred: (State) -> Bool) -> Item? {
        let isWaiting = !responses.isEmpty
        if isResponseNext, let response = responses.next() {
            isResponseNext = false
            return .response(response)
        }
        isResponseNext = true
        if let state = states.next(unless: { $0 == .offline && isWaiting || isDeferred($0) }) { return .state(state) }
        if let response = responses.next() { return .response(response) }
        if !events.isEmpty { return .event(events.removeFirst()) }
        return isCleanUpAllowed ? cleanUps.next(unless: isDeferred).map(Item.state) : nil
    }

    /// True if the state waits.
    func contains(_ state: State) -> Bool { states.contains(state) }

    /// Removes all states, as the next session publishes them again; responses and events stay.
    ///
    /// - Parameter unanswered: The responses that the broker has not acknowledged; they are published again.
    mutating func endSession(unanswered: [MQTTResponse]) {
        isOpen = false
        states = StateQueue()
        cleanUps = StateQueue()
        isCleanUpIncomplete = false
        responses.putBack(unanswered)
    }
}

/// The states in order; a state that is appended again leaves its earlier place.
private struct StateQueue {
    private var states: [PublishQueue.State?] = []
    private var first = 0
    private var places: [PublishQueue.State: Int] = [:]

    var count: Int { places.count }

    func contains(_ state: PublishQueue.State) -> Bool { places[state] != nil }

    mutating func append(_ state: PublishQueue.State) {
        if let place = places.updateValue(states.count, forKey: state) { states[place] = nil }
        states.append(state)
        if states.count > 2 * places.count + 64 { closeGaps() }
    }

    /// Dequeues the first state that does not have to wait.
    mutating func next(unless waits: (PublishQueue.State) -> Bool) -> PublishQueue.State? {
        while first < states.count, states[first] == nil { first += 1 }
        var index = first
        while index < states.count {
            if let state = states[index], !waits(state) {
                states[index] = nil
                places[state] = nil
                return state
            }
            index += 1
        }
        if places.isEmpty { self = StateQueue() }
        return nil
    }

    mutating func remove(where isRemoved: (PublishQueue.State) -> Bool) {
        for (state, place) in places where isRemoved(state) {
            states[place] = nil
            places[state] = nil
        }
    }

    private mutating func closeGaps() {
        states = states.dropFirst(first).filter { $0 != nil }
        first = 0
        for case (let place, let state?) in states.enumerated() { places[state] = place }
    }
}

/// The newest states of topics that are set aside, held until the next attempt.
///
/// There are at most as many as refused topics.
///
/// On the loop's thread only.
final class HeldStates {
    private let context: DeliveryContext
    private let admission: TopicAdmission
    private let timer: DeadlineTimer
    private var states: [String: PublishQueue.State] = [:]

    init(_ context: DeliveryContext, _ admission: TopicAdmission) {
        self.context = context
        self.admission = admission
        timer = DeadlineTimer(context.time)
    }

    /// Keeps a state; `retry` receives the states that may be tried again.
    func add(_ state: PublishQueue.State, on topic: String, retry: @escaping ([PublishQueue.State]) -> Void) {
        states = states.filter { admission.isSetAside($0.key) }
        states[topic] = state
        schedule(retry)
    }

    func removeAll() {
        states = [:]
        timer.set(nil)
    }

    private func schedule(_ retry: @escaping ([PublishQueue.State]) -> Void) {
        timer.set(states.keys.compactMap { admission.retryTime(of: $0) }.min()) { [weak self] in
            guard let self else { return }
            retry(removeDue())
            schedule(retry)
        }
    }

    private func removeDue() -> [PublishQueue.State] {
        let now = context.now
        let due = states.filter { admission.retryTime(of: $0.key).map { $0 <= now } ?? true }
        for topic in due.keys { states[topic] = nil }
        return Array(due.values)
    }
}
