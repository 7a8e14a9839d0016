/// What waits to be published besides readings: state first, then answers, then events.
///
/// State is only named here and written when its turn comes, so that the newest value goes out and
/// nothing piles up. Answers and events are bounded; what does not fit is dropped and counted.
struct PublishQueue {
    enum State: Hashable {
        case info
        case connection(device: String)
        case availability(device: String)
        /// The device's description for Home Assistant.
        case discovery(device: String)
        /// Listen to the requests.
        case subscribe
        /// Listen to Home Assistant's start.
        case awaitBirth
        /// Ask the broker for what earlier runs left of devices that are none of ours any more.
        case sweep
        /// An empty retained message, which clears the topic.
        case cleared(topic: String)
        /// Ask the broker for what it still retains of a device that was removed.
        case seek(device: String)
        case stopSeeking(device: String)
        case online
        case offline
    }

    enum Item {
        case state(State)
        case answer([UInt8], MQTTResponse)
        case event([UInt8])
    }

    static let maximumEvents = 256

    /// In order; those that were queued again later are gone from their first place.
    private var states: [State?] = []
    private var firstState = 0
    private var places: [State: Int] = [:]
    private var answers = ResponseQueue()
    private var events: [[UInt8]] = []

    /// What waits already goes last: it may be about what was cleared meanwhile.
    mutating func append(_ state: State) {
        if let place = places.updateValue(states.count, forKey: state) { states[place] = nil }
        states.append(state)
        if states.count > 2 * places.count + 64 { closeGaps() }
    }

    /// False when there is no room.
    mutating func append(_ answer: MQTTResponse) -> Bool {
        answers.append(answer)
    }

    /// False when there was no room and the oldest event had to go.
    mutating func append(event: [UInt8]) -> Bool {
        events.append(event)
        guard events.count > Self.maximumEvents else { return true }
        events.removeFirst()
        return false
    }

    mutating func next() -> Item? {
        if let state = nextState() { return .state(state) }
        if let (payload, answer) = answers.next() { return .answer(payload, answer) }
        return events.isEmpty ? nil : .event(events.removeFirst())
    }

    private mutating func nextState() -> State? {
        while firstState < states.count {
            defer { firstState += 1 }
            guard let state = states[firstState] else { continue }
            places[state] = nil
            return state
        }
        states.removeAll()
        firstState = 0
        return nil
    }

    private mutating func closeGaps() {
        states = states.dropFirst(firstState).filter { $0 != nil }
        firstState = 0
        for case (let place, let state?) in states.enumerated() { places[state] = place }
    }

    /// Removes the states, of which the next session publishes all; answers and events wait for it.
    mutating func sessionEnded() {
        states.removeAll()
        firstState = 0
        places.removeAll()
    }
}
