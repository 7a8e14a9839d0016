import GattherdSync

/// The calls that wait for an answer, and those that wait for their turn.
struct CallTable {
    typealias Outcome = Result<[DBusValue], DBusError>

    struct Call {
        let message: OutgoingMessage
        let timer: LoopTimer
        /// Called with the answer, even one after the call was given up, or with an error if none can come.
        let onAnswer: (Outcome) -> Void
        let completion: (Outcome) -> Void
        var serial: UInt32?

        func end(_ outcome: Outcome) {
            onAnswer(outcome)
            completion(outcome)
        }
    }

    /// The bus allows 128 open calls for a connection, and continues to count abandoned ones.
    static let openLimit = 64

    /// The handlers of calls that were given up after they had been sent, and have no answer yet.
    private var abandoned: [UInt32: (Outcome) -> Void] = [:]
    private var calls: [UInt64: Call] = [:]
    private var bySerial: [UInt32: UInt64] = [:]
    private var queue: [UInt64] = []
    private var nextID: UInt64 = 0

    /// Calls without an answer, sent or not.
    var count: Int { calls.count }
    /// Calls that were given up after they had been sent, and have no answer yet.
    var abandonedCount: Int { abandoned.count }

    /// Returns the identifiers of an object's unanswered calls, sent or not, in the order of the calls.
    func ids(of path: String) -> [UInt64] { calls.filter { $0.value.message.path == path }.keys.sorted() }

    mutating func makeID() -> UInt64 {
        defer { nextID += 1 }
        return nextID
    }

    mutating func add(_ id: UInt64, _ call: Call) {
        calls[id] = call
        queue.append(id)
    }

    /// Dequeues the next call to send, if there is room.
    mutating func dequeue() -> (UInt64, OutgoingMessage)? {
        while bySerial.count < Self.openLimit, let id = queue.first {
            queue.removeFirst()
            if let call = calls[id] { return (id, call.message) }
        }
        return nil
    }

    /// Records the serial number of a call that was sent.
    mutating func markSent(_ id: UInt64, serial: UInt32) {
        calls[id]?.serial = serial
        bySerial[serial] = id
    }

    mutating func remove(_ id: UInt64, on loop: EventLoop) -> Call? {
        guard let call = calls.removeValue(forKey: id) else { return nil }
        if let serial = call.serial { bySerial[serial] = nil }
        loop.cancel(call.timer)
        return call
    }

    /// Removes the call of a reply.
    mutating func remove(serial: UInt32, on loop: EventLoop) -> Call? {
        bySerial[serial].flatMap { remove($0, on: loop) }
    }

    /// Removes an abandoned call that is answered now; returns its handler.
    mutating func removeAbandoned(serial: UInt32) -> ((Outcome) -> Void)? {
        abandoned.removeValue(forKey: serial)
    }

    /// Removes a call that is given up; if it was sent, its handler waits for the answer.
    mutating func abandon(_ id: UInt64, on loop: EventLoop) -> Call? {
        let call = remove(id, on: loop)
        if let call, let serial = call.serial { abandoned[serial] = call.onAnswer }
        return call
    }

    mutating func failAll(_ error: DBusError, on loop: EventLoop) {
        for id in calls.keys.sorted() { remove(id, on: loop)?.end(.failure(error)) }
        for serial in abandoned.keys.sorted() { removeAbandoned(serial: serial)?(.failure(error)) }
        queue.removeAll()
    }
}
