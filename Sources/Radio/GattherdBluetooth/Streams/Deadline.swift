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

/// The time limit of one attempt to connect.
///
/// The limit of a caller counts from the call. No caller waits for an automatic attempt, so its limit excludes the time
/// in which other peripherals have their turns.
struct ConnectDeadline: Sendable {
    let timeout: Duration
    /// True if waiting for a turn uses up the limit.
    let includesTurns: Bool
    private(set) var end: ContinuousClock.Instant

    init(_ timeout: Duration, includesTurns: Bool, from start: ContinuousClock.Instant = .now) {
        self.timeout = timeout
        self.includesTurns = includesTurns
        end = start.advanced(by: timeout.settable)
    }

    /// The end of the wait for a turn; `nil` for none.
    var endOfWait: ContinuousClock.Instant? { includesTurns ? end : nil }

    /// The time that is left; never negative.
    func remaining(_ now: ContinuousClock.Instant = .now) -> Duration { max(.zero, now.duration(to: end)) }

    /// Moves the end of an automatic attempt by the time that it waited for its turn.
    mutating func waited(from start: ContinuousClock.Instant, to now: ContinuousClock.Instant = .now) {
        if !includesTurns { end = end.advanced(by: max(.zero, start.duration(to: now))) }
    }
}
