import Synchronization

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
