import CPostgres
import GattherdSync

/// A request to cancel a statement, sent by a connection of its own.
///
/// `@unchecked Sendable` is safe: libpq lets any thread use the request, and only one does.
@safe final class CancelRequest: @unchecked Sendable {
    /// The maximum number of threads that send; a server that does not answer holds each forever.
    private static let most = 4
    private static let sending = Locked(0)

    private let raw: OpaquePointer

    /// - Parameter raw: The request, which is freed with this object.
    init(_ raw: OpaquePointer) {
        unsafe self.raw = raw
    }

    deinit {
        unsafe PQfreeCancel(raw)
    }

    /// Sends the request on a thread of its own, because libpq waits for the server without a limit.
    func send() {
        let isAllowed = Self.sending.withLock { count in
            guard count < Self.most else { return false }
            count += 1
            return true
        }
        guard isAllowed else { return }
        let isStarted = NamedThread.start(name: "pg-cancel") { [self] in
            var words = [CChar](repeating: 0, count: 256)
            _ = unsafe PQcancel(raw, &words, 256)
            Self.sending.withLock { $0 -= 1 }
        }
        if !isStarted { Self.sending.withLock { $0 -= 1 } }
    }
}
