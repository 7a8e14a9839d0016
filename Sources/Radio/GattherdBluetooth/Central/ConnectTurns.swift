import GattherdMachines
import GattherdSync

/// The turns to connect: one attempt at a time on each adapter, granted by the connect queue of the daemon.
///
/// An attempt that exceeds the queue's patience no longer blocks the others.
final class ConnectTurns: Sendable {
    private struct State: Sendable {
        var queue: ConnectQueue
        /// The adapter of each peripheral that waits or connects.
        var adapters: [String: BluetoothAddress] = [:]

        /// Grants all turns that are free; returns the peripherals that have one.
        mutating func grant(now: Duration) -> Set<String> {
            let adapters = adapters
            while queue.next(now: now, adapters: Set(adapters.values), place: { adapters[$0] }) != nil {}
            return queue.connecting
        }
    }

    private let state: Locked<State>
    /// The peripherals that have a turn.
    private let granted = LatestValue<Set<String>>([])
    private let start = ContinuousClock.now

    init(_ queue: ConnectQueue = ConnectQueue()) {
        state = Locked(State(queue: queue))
    }

    /// The number of peripherals that wait or connect.
    var count: Int { state.withLock { $0.adapters.count } }

    /// Runs one attempt to connect in its turn.
    ///
    /// - Parameters:
    ///   - peripheral: The peripheral; it has at most one attempt at a time.
    ///   - failures: The number of consecutive failures, of which the first may be the loss of its link.
    ///   - deadline: The end of the wait for the turn.
    ///   - late: The error at the deadline.
    ///   - attempt: The attempt.
    /// - Throws: The error of the attempt; `late`; `cancelled`.
    func perform(
        _ peripheral: PeripheralID,
        failures: Int,
        until deadline: ContinuousClock.Instant,
        late: BluetoothError,
        _ attempt: () async throws(BluetoothError) -> Void
    ) async throws(BluetoothError) {
        let name = "\(peripheral.adapter) \(peripheral.address)"
        grant { [now] state in
            state.adapters[name] = peripheral.adapter
            state.queue.add(name, failures: failures, now: now)
        }
        defer {
            grant { state in
                state.adapters[name] = nil
                state.queue.remove(name)
            }
        }
        guard try await withDeadline(deadline, late, { await self.turn(of: name) }) == true else {
            throw BluetoothError(.cancelled, "cancelled")
        }
        try await attempt()
    }

    private var now: Duration { start.duration(to: .now) }

    private func grant(after change: (inout State) -> Void = { _ in }) {
        granted.update { granted in
            granted = state.withLock { state in
                change(&state)
                return state.grant(now: now)
            }
        }
    }

    /// Waits for the turn; `nil` if the task is cancelled.
    private func turn(of name: String) async -> Bool? {
        await withTaskGroup(of: Bool?.self) { group in
            group.addTask {
                for await granted in self.granted.watch() where granted.contains(name) { return true }
                return nil
            }
            group.addTask {
                await self.grantAsPatienceEnds()
                return nil
            }
            let hasTurn = await group.next() ?? nil
            group.cancelAll()
            return hasTurn
        }
    }

    /// Grants turns whenever an attempt exceeds the patience, until the task is cancelled.
    private func grantAsPatienceEnds() async {
        for await _ in granted.watch() {
            while let end = state.withLock({ [now] in $0.queue.deadline(after: now) }),
                (try? await Task.sleep(until: start.advanced(by: end), clock: .continuous)) != nil
            {
                grant()
            }
        }
    }
}
