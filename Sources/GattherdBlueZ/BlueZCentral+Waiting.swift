import GattherdBluetooth
import GattherdSync

/// Somebody who sleeps until there is news.
struct Waiter {
    enum Reason: Sendable {
        case changed
        case deadline
        case cancelled
    }

    /// Whose news; `nil` for none but the end of everything.
    let peripheral: PeripheralID?
    let timer: LoopTimer
    let continuation: CheckedContinuation<Reason, Never>
}

extension BlueZCentral {
    /// Asks `answer` again at each news of the peripheral, until it has one.
    ///
    /// - Throws: What `answer` throws; `timedOut` at the deadline; `cancelled`.
    func wait<Answer>(
        for id: PeripheralID,
        until deadline: SuspendingClock.Instant,
        _ what: String,
        _ answer: () throws(BluetoothError) -> Answer?
    ) async throws(BluetoothError) -> Answer {
        while true {
            if let answer = try answer() { return answer }
            switch await sleep(on: id, for: deadline - SuspendingClock.now) {
            case .changed: break
            case .deadline: throw BluetoothError(.timedOut, "\(id.address): \(what) took too long")
            case .cancelled: throw BluetoothError(.cancelled, "cancelled")
            }
        }
    }

    /// Sleeps until there is news of `id`, the limit passes, or the task is cancelled.
    func sleep(on id: PeripheralID? = nil, for limit: Duration) async -> Waiter.Reason {
        guard !isClosed else { return .cancelled }
        let number = nextWaiter
        nextWaiter += 1
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let timer = loop.schedule(after: limit) { self.wake(number, .deadline) }
                waiters[number] = Waiter(peripheral: id, timer: timer, continuation: continuation)
            }
        } onCancel: {
            loop.execute { self.assumeIsolated { $0.wake(number, .cancelled) } }
        }
    }

    func wake(_ number: UInt64, _ reason: Waiter.Reason) {
        guard let waiter = waiters.removeValue(forKey: number) else { return }
        loop.cancel(waiter.timer)
        waiter.continuation.resume(returning: reason)
    }

    func wakeWaiters(of id: PeripheralID) {
        for waiter in waiters where waiter.value.peripheral == id { wake(waiter.key, .changed) }
    }
}
