import GattherdSync

/// A stream of events to one client: octets that wait for the server to send them, as many as fit.
public final class EventChannel: Sendable {
    enum Portion: Equatable {
        case octets([UInt8])
        /// Nothing waits; ``onArrival(_:)`` tells of what comes.
        case nothing
        case end
    }

    private struct Shared: Sendable {
        /// Whole messages, of the first of which a part has been taken.
        var messages: [[UInt8]] = []
        var taken = 0
        /// Octets that have not been taken.
        var size = 0
        var isClosed = false
        var arrival: (@Sendable () -> Void)?
    }

    private let shared = Locked(Shared())
    private let capacity: Int

    /// - Parameter capacity: Octets that may wait; a message that is larger is taken when nothing waits.
    public init(capacity: Int) {
        self.capacity = capacity
    }

    /// True once the client has gone, or the stream was ended.
    public var isClosed: Bool { shared.withLock { $0.isClosed } }

    /// Sends a message.
    ///
    /// - Returns: False when nothing of it was taken, as the client does not keep up or has gone.
    public func send(_ message: [UInt8]) -> Bool {
        let (isTaken, arrival) = shared.withLock { shared in
            guard !shared.isClosed, shared.size == 0 || shared.size + message.count <= capacity else {
                return (false, nil as (@Sendable () -> Void)?)
            }
            shared.messages.append(message)
            shared.size += message.count
            return (true, shared.arrival)
        }
        arrival?()
        return isTaken
    }

    /// Forgets the messages of which the client has got nothing yet.
    public func dropWaiting() {
        shared.withLock { shared in
            shared.messages = shared.taken > 0 ? Array(shared.messages.prefix(1)) : []
            shared.size = (shared.messages.first?.count ?? 0) - shared.taken
        }
    }

    /// Ends the stream, after what has been sent already.
    public func close() {
        let arrival = shared.withLock { shared in
            shared.isClosed = true
            return shared.arrival
        }
        arrival?()
    }

    /// Calls `arrival` whenever something has come, from any thread.
    func onArrival(_ arrival: @escaping @Sendable () -> Void) {
        shared.withLock { $0.arrival = arrival }
    }

    /// Takes at most `limit` octets.
    func take(_ limit: Int) -> Portion {
        shared.withLock { shared in
            guard let message = shared.messages.first else { return shared.isClosed ? .end : .nothing }
            let end = min(message.count, shared.taken + limit)
            let portion = Array(message[shared.taken..<end])
            shared.size -= portion.count
            shared.taken = end
            if end == message.count {
                shared.messages.removeFirst()
                shared.taken = 0
            }
            return .octets(portion)
        }
    }

    /// The client has gone: nothing more is taken or given.
    func abandon() {
        shared.withLock { shared in
            shared = Shared()
            shared.isClosed = true
        }
    }
}
