import GattherdBluetooth
import GattherdSync

/// Somebody who sleeps until there is news.
struct ChangeWaiter {
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
    func sleep(on id: PeripheralID? = nil, for limit: Duration) async -> ChangeWaiter.Reason {
        guard !isClosed else { return .cancelled }
        let number = makeWaiterNumber()
        return await withTaskCancellationHandler {
            await sleep(as: number, on: id, for: limit)
        } onCancel: {
            loop.execute { self.assumeIsolated { $0.wake(number, .cancelled) } }
        }
    }

    /// Waits for the answers to all `AcquireNotify` under way, for two seconds at most, also in a task that is cancelled.
    func finishAcquisitions() async {
        let deadline = SuspendingClock.now + .seconds(2)
        while let id = acquisitions.values.first {
            let reason = await sleep(as: makeWaiterNumber(), on: id, for: deadline - SuspendingClock.now)
            guard reason == .changed else { return }
        }
    }

    private func makeWaiterNumber() -> UInt64 {
        nextWaiter += 1
        return nextWaiter
    }

    private func sleep(as number: UInt64, on id: PeripheralID?, for limit: Duration) async -> ChangeWaiter.Reason {
        await withCheckedContinuation { continuation in
            let timer = loop.schedule(after: limit) { self.wake(number, .deadline) }
            waiters[number] = ChangeWaiter(peripheral: id, timer: timer, continuation: continuation)
        }
    }

    func wake(_ number: UInt64, _ reason: ChangeWaiter.Reason) {
        guard let waiter = waiters.removeValue(forKey: number) else { return }
        loop.cancel(waiter.timer)
        waiter.continuation.resume(returning: reason)
    }

    func wakeWaiters(of id: PeripheralID) {
        for waiter in waiters where waiter.value.peripheral == id { wake(waiter.key, .changed) }
    }
}
