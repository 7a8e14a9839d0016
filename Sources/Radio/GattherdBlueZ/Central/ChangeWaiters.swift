import GattherdBluetooth
import GattherdSync

/// The tasks that wait for changes of peripherals; on the Bluetooth thread only.
final class ChangeWaiters: Sendable {
    /// The reason why a wait ended.
    enum WakeReason: Sendable {
        case changed
        case deadline
        case cancelled
    }

    private struct Waiter {
        /// The peripheral whose changes end the wait; `nil` if only ``close()`` does.
        let peripheral: PeripheralID?
        let timer: LoopTimer
        let continuation: CheckedContinuation<WakeReason, Never>
    }

    private struct State {
        var waiters: [UInt64: Waiter] = [:]
        var nextNumber: UInt64 = 0
        var isClosed = false
    }

    private let loop: EventLoop
    private let state: LoopConfined<State>

    init(on loop: EventLoop) {
        self.loop = loop
        state = LoopConfined(State(), to: loop)
    }

    var count: Int { state.value.waiters.count }

    // MARK: - Waiting

    /// Calls `answer` again after each change of the peripheral until it returns a value.
    ///
    /// - Throws: The error of `answer`; `timedOut` at the deadline; `cancelled`.
    func wait<Answer>(
        for id: PeripheralID,
        until deadline: SuspendingClock.Instant,
        _ operation: String,
        _ answer: () throws(BluetoothError) -> Answer?
    ) async throws(BluetoothError) -> Answer {
        while true {
            if let answer = try answer() { return answer }
            switch await sleep(on: id, for: deadline - SuspendingClock.now) {
            case .changed: break
            case .deadline: throw BluetoothError(.timedOut, "\(id.address): \(operation) took too long")
            case .cancelled: throw BluetoothError(.cancelled, "cancelled")
            }
        }
    }

    /// Sleeps until the peripheral changes, the limit passes, or the task is cancelled.
    func sleep(
        on id: PeripheralID? = nil,
        for limit: Duration,
        isolation: isolated (any Actor)? = #isolation
    ) async -> WakeReason {
        guard !state.value.isClosed else { return .cancelled }
        let number = makeNumber()
        return await withTaskCancellationHandler {
            // Without this the closure would leave the loop.
            _ = isolation
            return await sleep(as: number, on: id, for: limit)
        } onCancel: {
            loop.execute { self.wake(number, .cancelled) }
        }
    }

    /// Sleeps as ``sleep(on:for:isolation:)`` does, also in a task that is cancelled and in a central that closes.
    func sleepUninterrupted(on id: PeripheralID, for limit: Duration) async -> WakeReason {
        await sleep(as: makeNumber(), on: id, for: limit)
    }

    private func sleep(as number: UInt64, on id: PeripheralID?, for limit: Duration) async -> WakeReason {
        await withCheckedContinuation { continuation in
            let timer = loop.schedule(after: limit) { self.wake(number, .deadline) }
            state.value.waiters[number] = Waiter(peripheral: id, timer: timer, continuation: continuation)
        }
    }

    private func makeNumber() -> UInt64 {
        state.value.nextNumber += 1
        return state.value.nextNumber
    }

    // MARK: - Waking

    /// Wakes the tasks that wait for changes of `id`.
    func wake(_ id: PeripheralID) {
        for waiter in state.value.waiters where waiter.value.peripheral == id { wake(waiter.key, .changed) }
    }

    /// Wakes the tasks that wait for changes of any peripheral.
    func wakeAll() {
        for waiter in state.value.waiters where waiter.value.peripheral != nil { wake(waiter.key, .changed) }
    }

    /// Wakes all tasks; later ones do not sleep.
    func close() {
        state.value.isClosed = true
        for number in Array(state.value.waiters.keys) { wake(number, .changed) }
    }

    private func wake(_ number: UInt64, _ reason: WakeReason) {
        guard let waiter = state.value.waiters.removeValue(forKey: number) else { return }
        loop.cancel(waiter.timer)
        waiter.continuation.resume(returning: reason)
    }
}
