/// Values for one consumer, from the moment the sequence was made.
///
/// Values arrive for as long as the sequence or one of its iterators is held; leaving the loop is enough to stop. Values that
/// are not consumed are buffered by the sequence's ``BufferingPolicy``; dropped ones are counted. Cancelling the
/// consumer's task ends the loop.
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
            // Such a sequence has no error.
            try? await mailbox.next()
        }

        public mutating func next(isolation: isolated (any Actor)?) async -> Element? {
            await next()
        }
    }
}
