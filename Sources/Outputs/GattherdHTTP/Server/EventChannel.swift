import GattherdSync

/// The event stream of one client: a bounded queue of bytes.
package final class EventChannel: Sendable {
    enum Portion: Equatable {
        case bytes([UInt8])
        /// The queue is empty; ``onArrival(_:)`` reports new messages.
        case nothing
        case end
    }

    private struct Shared: Sendable {
        /// Queued messages; the first ``taken`` bytes of the first one are sent.
        var messages: [[UInt8]] = []
        var taken = 0
        /// The number of queued bytes.
        var size = 0
        var isClosed = false
        var arrival: (@Sendable () -> Void)?
    }

    private let shared = Locked(Shared())
    private let capacity: Int

    /// - Parameter capacity: The size of the queue in bytes. An empty queue accepts a larger message.
    package init(capacity: Int) {
        self.capacity = capacity
    }

    /// True after the client disconnected or the stream was closed.
    package var isClosed: Bool { shared.withLock { $0.isClosed } }

    /// Sends a message.
    ///
    /// - Returns: False if the queue is full or the client is gone; nothing is sent then.
    package func send(_ message: [UInt8]) -> Bool {
        let (isQueued, arrival) = shared.withLock { shared in
            guard !shared.isClosed, shared.size == 0 || shared.size + message.count <= capacity else {
                return (false, nil as (@Sendable () -> Void)?)
            }
            shared.messages.append(message)
            shared.size += message.count
            return (true, shared.arrival)
        }
        arrival?()
        return isQueued
    }

    /// Removes all messages that are not partly sent.
    package func dropQueued() {
        shared.withLock { shared in
            shared.messages = shared.taken > 0 ? Array(shared.messages.prefix(1)) : []
            shared.size = (shared.messages.first?.count ?? 0) - shared.taken
        }
    }

    /// Closes the stream after the queued messages.
    package func close() {
        let arrival = shared.withLock { shared in
            shared.isClosed = true
            return shared.arrival
        }
        arrival?()
    }

    /// Calls `arrival`, on any thread, for each new message.
    func onArrival(_ arrival: @escaping @Sendable () -> Void) {
        shared.withLock { $0.arrival = arrival }
    }

    /// Dequeues at most `limit` bytes.
    func dequeue(_ limit: Int) -> Portion {
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
            return .bytes(portion)
        }
    }

    /// Closes the channel and empties the queue, after the client disconnected.
    func abandon() {
        shared.withLock { shared in
            shared = Shared()
            shared.isClosed = true
        }
    }
}
