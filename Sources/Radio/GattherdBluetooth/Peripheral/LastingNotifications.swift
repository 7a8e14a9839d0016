import GattherdSync

/// An event of a subscription that outlives links.
public enum NotificationEvent<Value: Sendable>: Sendable {
    /// The peripheral confirmed the subscription: values follow. Values before this event may be missing.
    case subscribed
    case value(Value)
    /// The peripheral sent bytes that are no `Value`.
    case invalid(BluetoothError)
    /// The subscription ended, so that values are missing until the next ``subscribed``.
    ///
    /// The error is the reason why the link was lost, or states that the peripheral ended the subscription; `nil` if
    /// this program disconnected.
    case interrupted(BluetoothError?)
    /// The subscription is impossible on this link: the characteristic is missing or refuses.
    ///
    /// The next link, or a change of the services, is another chance.
    case refused(BluetoothError)
}

/// The values of one characteristic over all links, and the gaps between them.
///
/// The central subscribes whenever the peripheral is connected, after the connection tasks, and again when the
/// peripheral ends a subscription. On one link it does so up to five times in a row, counted from the last subscription
/// that lasted ten seconds. The sequence never throws. It ends when it is stopped, when its task is cancelled, and when
/// the central is closed. The ``BufferingPolicy`` applies to all events.
public struct LastingNotifications<Value: Readable>: AsyncSequence, Sendable {
    public typealias Element = NotificationEvent<Value>
    public typealias Failure = Never

    let listener: LastingListener
    let lease: Cancellable

    /// The number of events dropped because they were not consumed in time.
    public var droppedCount: UInt64 { listener.mailbox.droppedCount }

    /// The values alone, without gaps and invalid values.
    public var values: Values { Values(events: self) }

    /// Ends the sequence after its buffered events.
    public func stop() {
        listener.mailbox.finish()
        lease.end()
    }

    public func makeAsyncIterator() -> Iterator { Iterator(listener: listener, lease: lease) }

    public struct Iterator: AsyncIteratorProtocol, Sendable {
        public typealias Failure = Never

        fileprivate let listener: LastingListener
        fileprivate let lease: Cancellable

        /// The next event; `nil` at the end, and when the task is cancelled.
        public mutating func next() async -> NotificationEvent<Value>? {
            // Such a mailbox has no error.
            guard let event = try? await listener.mailbox.next() else { return nil }
            switch event {
            case .subscribed: return .subscribed
            case .interrupted(let error): return .interrupted(error)
            case .refused(let error): return .refused(error)
            case .value(let value): return Self.event(value)
            }
        }

        public mutating func next(isolation: isolated (any Actor)?) async -> NotificationEvent<Value>? {
            await next()
        }

        private static func event(_ value: CharacteristicValue) -> NotificationEvent<Value> {
            do throws(BluetoothError) {
                return .value(try Value(value: value.octets))
            } catch {
                return .invalid(error.during(.notification))
            }
        }
    }

    /// The values of ``LastingNotifications`` alone.
    public struct Values: AsyncSequence, Sendable {
        public typealias Element = Value
        public typealias Failure = Never

        fileprivate let events: LastingNotifications

        public func makeAsyncIterator() -> Iterator { Iterator(events: events.makeAsyncIterator()) }

        public struct Iterator: AsyncIteratorProtocol, Sendable {
            public typealias Failure = Never

            fileprivate var events: LastingNotifications.Iterator

            /// The next value; `nil` at the end, and when the task is cancelled.
            public mutating func next() async -> Value? {
                while let event = await events.next() {
                    if case .value(let value) = event { return value }
                }
                return nil
            }

            public mutating func next(isolation: isolated (any Actor)?) async -> Value? {
                await next()
            }
        }
    }
}

// Subscriptions that outlive links.
extension Peripheral {
    /// Returns the values of a characteristic over all links, present and future, and the gaps between them.
    ///
    ///     let beats = strap.lastingNotifications(of: HeartRateMeasurement.self, from: 0x2A37)
    ///     strap.keepConnected()
    ///     for await event in beats { … }
    ///
    /// The peripheral need not be connected, and the function does not connect it. Any number of sequences share one
    /// subscription on each link.
    ///
    /// - Parameters:
    ///   - type: The type of the values.
    ///   - characteristic: The characteristic, by its UUID.
    ///   - buffering: The policy for events that are not consumed in time; ``Central/Configuration/buffering`` if
    ///     `nil`.
    /// - Returns: The events from now on.
    public func lastingNotifications<Value: Readable>(
        of type: Value.Type = Value.self,
        from characteristic: CharacteristicID,
        buffering: BufferingPolicy? = nil
    ) -> LastingNotifications<Value> {
        let listener = LastingListener(characteristic, buffering ?? central.configuration.buffering)
        let id = central.registry.withLock { $0.makeID() }
        let link = central.withLink(id: self.id, adding: listener, as: id)
        central.joinLasting(link)
        let subscriber = Subscriber(central: central, link: link)
        let lease = Cancellable {
            link.lasting.remove(id)
            subscriber.leave(id)
        }
        return LastingNotifications(listener: listener, lease: lease)
    }
}

extension Central {
    /// Adds a listener to the peripheral's link object, which is created if necessary.
    fileprivate func withLink(id: PeripheralID, adding listener: LastingListener, as number: UInt64) -> Link {
        withLink(id) { link in
            link.lasting.add(listener, as: number)
            return link
        }
    }

    /// Subscribes in the background for the lasting listeners of a ready link that have no subscription.
    func joinLasting(_ link: Link) {
        guard link.connection == .ready, link.lasting.all.values.contains(where: \.canJoin) else { return }
        inBackground { await self.subscribeLasting(link) }
    }

    /// Subscribes for all lasting listeners that have no subscription.
    func subscribeLasting(_ link: Link) async {
        let subscriber = Subscriber(central: self, link: link)
        let peripheral = Peripheral(link.id, of: self)
        var pause: Duration?
        for (id, listener) in link.lasting.all.sorted(by: { $0.key < $1.key }) where listener.beginJoining() {
            do throws(BluetoothError) {
                try await peripheral.perform(.subscribe, on: listener.characteristic, within: nil) {
                    (remote, _) throws(BluetoothError) in
                    _ = try await subscriber.join(remote) { $0.add(listener, as: id) }
                }
                listener.confirm()
            } catch {
                pause = listener.fail(error) ?? pause
            }
            // The sequence may have been stopped meanwhile.
            if link.lasting.all[id] == nil { subscriber.leave(id) }
        }
        guard let pause else { return }
        inBackground {
            guard (try? await Task.sleep(for: pause)) != nil else { return }
            self.joinLasting(link)
        }
    }

    /// Keeps characteristics subscribed on all links without a sequence, until a requested disconnect.
    func keepNotifying(_ characteristics: [CharacteristicID], of peripheral: PeripheralID) {
        for characteristic in characteristics {
            let id = registry.withLock { $0.makeID() }
            let link = withLink(peripheral) { link in
                if !link.lasting.characteristics.contains(characteristic) {
                    link.lasting.add(LastingListener(characteristic, .bufferingNewest(1)), as: id, isKept: true)
                }
                return link
            }
            joinLasting(link)
        }
    }
}
