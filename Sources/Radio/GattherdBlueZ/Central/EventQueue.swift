import GattherdBluetooth
import GattherdSync

/// The events for one consumer; the number of waiting statuses is bounded by the number of peripherals.
///
/// Advertisements produce new statuses at any rate. A new status replaces the peripheral's waiting one, unless another
/// event of the peripheral was published in between. So only outdated statuses are lost; ``PeripheralStatus/heard``
/// counts their advertisements.
final class EventQueue: Sendable {
    private struct State: Sendable {
        /// The events that wait, after some that were dequeued and are `nil`.
        var waiting: [CentralEvent?] = []
        /// The place of the first event in `waiting` that was not dequeued.
        var first = 0
        /// The number of events that were dequeued before the first in `waiting`.
        var dequeued = 0
        /// The place of each peripheral's replaceable status, counted from the start.
        var places: [PeripheralID: Int] = [:]
        var consumer: CheckedContinuation<CentralEvent?, Never>?
        var isFinished = false

        mutating func add(_ event: CentralEvent) {
            if case .peripheralChanged(let status) = event {
                if let place = places[status.id] {
                    waiting[place - dequeued] = event
                    return
                }
                places[status.id] = dequeued + waiting.count
            } else if let id = event.peripheral {
                places[id] = nil
            } else {
                places.removeAll()
            }
            waiting.append(event)
        }

        mutating func dequeue() -> CentralEvent? {
            guard first < waiting.count, let event = waiting[first].take() else { return nil }
            if let id = event.peripheral, places[id] == dequeued + first { places[id] = nil }
            first += 1
            if first * 2 >= waiting.count { compact() }
            return event
        }

        /// Moves the rest to the front when at least half was dequeued: each event moves once on average.
        private mutating func compact() {
            waiting.removeFirst(first)
            dequeued += first
            first = 0
        }
    }

    private let state = Locked(State())

    /// The one consumer's view.
    var stream: AsyncStream<CentralEvent> {
        AsyncStream {
            await self.next()
        } onCancel: {
            self.abandon()
        }
    }

    /// Adds an event and wakes the consumer.
    func push(_ event: CentralEvent) {
        add(event)
        wake()
    }

    /// Adds an event; ``wake()`` has to follow.
    ///
    /// Many statuses that come together then wake the consumer once.
    func add(_ event: CentralEvent) {
        state.withLock { state in
            if !state.isFinished { state.add(event) }
        }
    }

    /// Gives the first event to the consumer if it waits.
    func wake() {
        let waiting = state.withLock { state -> (consumer: CheckedContinuation<CentralEvent?, Never>, CentralEvent)? in
            guard state.consumer != nil, let event = state.dequeue() else { return nil }
            return state.consumer.take().map { ($0, event) }
        }
        if let (consumer, event) = waiting { consumer.resume(returning: event) }
    }

    /// Ends the stream after the queued events.
    func finish() {
        wake()
        let consumer = state.withLock { state in
            state.isFinished = true
            return state.consumer.take()
        }
        consumer?.resume(returning: nil)
    }

    private func abandon() {
        state.withLock { $0.consumer.take() }?.resume(returning: nil)
    }

    private func next() async -> CentralEvent? {
        await withCheckedContinuation { consumer in
            let (event, isDue) = state.withLock { state -> (CentralEvent?, Bool) in
                if let event = state.dequeue() { return (event, true) }
                guard !state.isFinished, !Task.isCancelled else { return (nil, true) }
                state.consumer = consumer
                return (nil, false)
            }
            if isDue { consumer.resume(returning: event) }
        }
    }
}

extension CentralEvent {
    /// The peripheral that the event is about.
    fileprivate var peripheral: PeripheralID? {
        switch self {
        case .peripheralChanged(let status): status.id
        case .disconnected(let id), .linkEnded(let id, _), .peripheralRemoved(let id), .servicesChanged(let id): id
        case .subscriptionEnded(_, let id), .tableCut(let id, _, _): id
        case .available, .accessDenied, .unavailable, .adapterChanged, .adapterRemoved: nil
        }
    }
}
