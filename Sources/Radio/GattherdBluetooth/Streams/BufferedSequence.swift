/// Values for one consumer, from the moment the sequence was made.
///
/// It takes part for as long as the sequence or one of its iterators is held; leaving the loop is enough to stop. What is not
/// taken is kept by the sequence's ``BufferingPolicy``, and counted when it is dropped. Cancelling the consumer's task
/// ends the loop.
public struct BufferedSequence<Element: Sendable>: AsyncSequence, Sendable {
    public typealias Failure = Never

    private let mailbox: Mailbox<Element>
    private let lease: Cancellable

    init(_ mailbox: Mailbox<Element>, lease: Cancellable) {
        self.mailbox = mailbox
        self.lease = lease
    }

    /// How many values were dropped, because they were not taken in time.
    public var droppedCount: UInt64 { mailbox.droppedCount }

    /// Ends the sequence after what is in it.
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
            // Nobody ends such a sequence with an error.
            try? await mailbox.next()
        }

        public mutating func next(isolation: isolated (any Actor)?) async -> Element? {
            await next()
        }
    }
}
