import Synchronization

/// Ends something once: when it is told to, or when nobody holds it any more.
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
