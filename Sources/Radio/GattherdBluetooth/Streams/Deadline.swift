extension Duration {
    /// The duration, limited to three hundred years: much longer ones trap in Swift's timers.
    var settable: Duration { min(self, .seconds(10_000_000_000)) }
}

/// Runs `body` until `deadline`, then throws `error`; `nil` when the task is cancelled meanwhile.
func withDeadline<Value: Sendable>(
    _ deadline: ContinuousClock.Instant,
    _ error: BluetoothError,
    _ body: @escaping @Sendable () async throws(BluetoothError) -> Value?
) async throws(BluetoothError) -> Value? {
    let result = await withTaskGroup(of: Result<Value?, BluetoothError>.self) { group in
        group.addTask {
            do throws(BluetoothError) { return .success(try await body()) } catch { return .failure(error) }
        }
        group.addTask {
            let isOver = (try? await Task.sleep(until: deadline, clock: .continuous)) != nil
            return isOver ? .failure(error) : .success(nil)
        }
        let first = await group.next()
        group.cancelAll()
        return first ?? .success(nil)
    }
    return try result.get()
}
