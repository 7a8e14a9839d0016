/// Values for one consumer, from the creation of the sequence on.
///
/// Values arrive until the sequence and its iterators are released; leaving the loop is enough. The sequence's
/// ``BufferingPolicy`` buffers values that are not consumed; dropped values are counted. Cancelling the consumer's
/// task ends the loop.
public struct BufferedSequence<Element: Sendable>: AsyncSequence, Sendable {
    public typealias Failure = Never

    private let mailbox: Mailbox<Element>
    private let lease: Cancellable

    init(_ mailbox: Mailbox<Element>, lease: Cancellable) {
        self.mailbox = mailbox
        self.lease = lease
    }

    /// The number of values dropped because they were not consumed in time.
    public var droppedCount: UInt64 { mailbox.droppedCount }

    /// Ends the sequence after its buffered values.
    public func stop() {
        mailbox.finish()
        lease.end()
    }

    public func makeAsyncIterator() -> Iterator { Iterator(mailbox: mailbox, lease: lease) }

    public struct Iterator: AsyncIteratorProtocol, Sendable {
        fileprivate let mailbox: Mailbox<Element>
        fileprivate let lease: Cancellable

        /// The next value; `nil` at the end, and when the task is cancelled.
        public mutating func next() async -> Element? {
            // Such a sequence has no error.
            try? await mailbox.next()
        }

        public mutating func next(isolation: isolated (any Actor)?) async -> Element? {
            await next()
        }
    }
}

/// The policy for values that are not consumed in time.
public enum BufferingPolicy: Hashable, Sendable {
    /// Keeps this number of the oldest values and drops newer ones.
    case bufferingOldest(Int)
    /// Keeps this number of the newest values and drops older ones.
    case bufferingNewest(Int)

    /// The maximum number of buffered values, at least 1.
    var limit: Int {
        switch self {
        case .bufferingOldest(let limit), .bufferingNewest(let limit): max(1, limit)
        }
    }
}
