import GattherdSync

/// A bounded queue from producers to consumers; drops are counted.
final class Mailbox<Element: Sendable>: Sendable {
    private enum Delivery: Sendable {
        case value(Element)
        case end(BluetoothError?)
    }

    private struct Waiter: Sendable {
        let id: UInt64
        let continuation: CheckedContinuation<Delivery, Never>
    }

    private struct State: Sendable {
        var values: [Element] = []
        /// The number of consumed values at the front of `values`.
        var taken = 0
        var dropped: UInt64 = 0
        var waiters: [Waiter] = []
        var nextID: UInt64 = 0
        var end: Delivery?

        var count: Int { values.count - taken }

        mutating func takeFirst() -> Element? {
            guard taken < values.count else { return nil }
            defer {
                taken += 1
                if taken * 2 > values.count { compact() }
            }
            return values[taken]
        }

        mutating func compact() {
            values.removeFirst(taken)
            taken = 0
        }
    }

    private let policy: BufferingPolicy
    private let state = Locked(State())

    init(_ policy: BufferingPolicy) {
        self.policy = policy
    }

    /// The number of values dropped because they were not consumed in time.
    var droppedCount: UInt64 { state.withLock { $0.dropped } }

    /// Counts values that were dropped before they came here.
    func countDropped(_ count: UInt64) {
        guard count > 0 else { return }
        state.withLock { $0.dropped += count }
    }

    func push(_ value: Element) {
        let waiter = state.withLock { state -> Waiter? in
            guard state.end == nil else { return nil }
            guard state.waiters.isEmpty else { return state.waiters.removeFirst() }
            keep(value, &state)
            return nil
        }
        waiter?.continuation.resume(returning: .value(value))
    }

    private func keep(_ value: Element, _ state: inout State) {
        if state.count >= policy.limit {
            state.dropped += 1
            guard case .bufferingNewest = policy else { return }
            _ = state.takeFirst()
        }
        state.values.append(value)
    }

    /// Ends the queue after its buffered values; an error is thrown once.
    func finish(_ error: BluetoothError? = nil) {
        let waiters = state.withLock { state -> [Waiter] in
            guard state.end == nil else { return [] }
            state.end = .end(state.waiters.isEmpty ? error : nil)
            defer { state.waiters = [] }
            return state.waiters
        }
        for (index, waiter) in waiters.enumerated() {
            waiter.continuation.resume(returning: .end(index == 0 ? error : nil))
        }
    }

    /// Waits for a value; `nil` at the end, and when the task is cancelled.
    func next() async throws(BluetoothError) -> Element? {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        let delivery = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard let delivery = take(Waiter(id: id, continuation: continuation)) else { return }
                continuation.resume(returning: delivery)
            }
        } onCancel: {
            abandon(id)
        }
        switch delivery {
        case .value(let value): return value
        case .end(nil): return nil
        case .end(.some(let error)): throw error
        }
    }

    /// Returns the next delivery; without one, adds `waiter` to the queue.
    private func take(_ waiter: Waiter) -> Delivery? {
        state.withLock { state in
            guard !Task.isCancelled else { return .end(nil) }
            if let value = state.takeFirst() { return .value(value) }
            if let end = state.end {
                state.end = .end(nil)
                return end
            }
            state.waiters.append(waiter)
            return nil
        }
    }

    private func abandon(_ id: UInt64) {
        let waiter = state.withLock { state -> Waiter? in
            guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return nil }
            return state.waiters.remove(at: index)
        }
        waiter?.continuation.resume(returning: .end(nil))
    }
}
