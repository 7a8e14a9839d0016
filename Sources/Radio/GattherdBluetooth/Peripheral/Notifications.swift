/// The values of one characteristic, from the moment of the subscription.
///
/// The subscription lasts until the sequence and its iterators are released; all sequences of a link share one
/// subscription. The ``BufferingPolicy`` buffers values that are not consumed; dropped values are counted.
public struct Notifications<Value: Readable>: AsyncSequence, Sendable {
    public typealias Element = Value
    /// The errors are ``BluetoothError``s.
    public typealias Failure = any Error

    let values: ValueListener

    /// The number of values dropped because they were not consumed in time.
    public var droppedCount: UInt64 { values.mailbox.droppedCount }

    /// Ends the subscription, and the sequence after its buffered values.
    public func stop() {
        values.mailbox.finish()
        values.lease.end()
    }

    public func makeAsyncIterator() -> Iterator { Iterator(values: values) }

    public struct Iterator: AsyncIteratorProtocol, Sendable {
        public typealias Failure = any Error

        fileprivate let values: ValueListener

        /// The next value; `nil` if the peripheral was disconnected on request, or the task is cancelled.
        ///
        /// - Throws: `notConnected` if the link is lost; `unknownAttribute` if the services have changed or the
        ///   peripheral ended the subscription; `invalidValue` for bytes that are no `Value`. After `invalidValue` the
        ///   next call continues with the next value.
        public mutating func next() async throws -> Value? {
            do throws(BluetoothError) {
                guard let value = try await values.mailbox.next() else { return nil }
                return try Value(value: value.octets)
            } catch {
                throw error.during(.notification)
            }
        }

        public mutating func next(isolation: isolated (any Actor)?) async throws -> Value? {
            try await next()
        }
    }
}

/// One listener of a subscription, until it is released.
struct ValueListener: Sendable {
    let mailbox: Mailbox<CharacteristicValue>
    let lease: Cancellable
}
