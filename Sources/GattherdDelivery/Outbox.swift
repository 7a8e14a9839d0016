/// What waits to be published besides readings: state first, then answers, then events.
///
/// State is only named here and written when its turn comes, so that the newest value goes out and
/// nothing piles up. Answers and events are bounded; what does not fit is dropped and counted.
struct Outbox {
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
        case answer([UInt8], Answer)
        case event([UInt8])
    }

    static let maximumAnswers = 64
    /// In octets, of all answers.
    static let maximumSize = 8 << 20
    static let maximumEvents = 256

    private var states: [State] = []
    private var waiting: Set<State> = []
    private var answers: [Answer] = []
    private var events: [[UInt8]] = []

    /// What waits already goes last: it may be about what was cleared meanwhile.
    mutating func append(_ state: State) {
        if !waiting.insert(state).inserted { states.removeAll { $0 == state } }
        states.append(state)
    }

    /// False when there is no room.
    mutating func append(_ answer: Answer) -> Bool {
        let size = answers.reduce(answer.size) { $0 + $1.size }
        guard answers.count < Self.maximumAnswers, size <= Self.maximumSize else { return false }
        answers.append(answer)
        return true
    }

    /// False when there was no room and the oldest event had to go.
    mutating func append(event: [UInt8]) -> Bool {
        events.append(event)
        guard events.count > Self.maximumEvents else { return true }
        events.removeFirst()
        return false
    }

    mutating func next() -> Item? {
        if !states.isEmpty {
            let state = states.removeFirst()
            waiting.remove(state)
            return .state(state)
        }
        if !answers.isEmpty {
            // Those that are long take turns with the others.
            var answer = answers.removeFirst()
            let payload = answer.takePayload()
            if !answer.isFinished { answers.append(answer) }
            return .answer(payload, answer)
        }
        return events.isEmpty ? nil : .event(events.removeFirst())
    }

    /// Forgets what only the present session could use, and gives the number of answers that were lost.
    mutating func sessionEnded() -> Int {
        defer {
            states.removeAll()
            waiting.removeAll()
            answers.removeAll()
        }
        return answers.count
    }
}
