import GattherdSync
import Synchronization

/// A sender of values to all current listeners.
final class Broadcast<Element: Sendable>: Sendable {
    private struct Listener: Sendable {
        let mailbox: Mailbox<Element>
        let admits: @Sendable (Element) -> Bool
    }

    private struct State: Sendable {
        var listeners: [UInt64: Listener] = [:]
        var nextID: UInt64 = 0
        var isFinished = false
    }

    private let state = Locked(State())

    var hasListeners: Bool { state.withLock { !$0.listeners.isEmpty } }

    func send(_ element: Element) {
        let listeners = state.withLock { Array($0.listeners.values) }
        for listener in listeners where listener.admits(element) { listener.mailbox.push(element) }
    }

    func finish() {
        let listeners = state.withLock { state in
            state.isFinished = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.mailbox.finish() }
    }

    /// Returns `first`, then the values that are sent from now on.
    func listen(
        _ policy: BufferingPolicy,
        after first: [Element] = [],
        where admits: @escaping @Sendable (Element) -> Bool = { _ in true }
    ) -> BufferedSequence<Element> {
        let mailbox = Mailbox<Element>(policy)
        for element in first { mailbox.push(element) }
        let id = state.withLock { state -> UInt64? in
            guard !state.isFinished else { return nil }
            state.nextID += 1
            state.listeners[state.nextID] = Listener(mailbox: mailbox, admits: admits)
            return state.nextID
        }
        if id == nil { mailbox.finish() }
        let lease = Cancellable { [weak self] in
            guard let id else { return }
            self?.state.withLock { $0.listeners[id] = nil }
        }
        return BufferedSequence(mailbox, lease: lease)
    }
}

/// An action that runs once: at ``end()``, or when the object is released.
final class Cancellable: Sendable {
    private let isEnded = Atomic(false)
    private let atEnd: @Sendable () -> Void

    init(_ atEnd: @escaping @Sendable () -> Void) {
        self.atEnd = atEnd
    }

    deinit { end() }

    func end() {
        guard !isEnded.exchange(true, ordering: .relaxed) else { return }
        atEnd()
    }
}
