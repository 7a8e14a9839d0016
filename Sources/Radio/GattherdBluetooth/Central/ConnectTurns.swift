import GattherdMachines
import GattherdSync

/// The turns to connect: one attempt at a time on each adapter, granted by the connect queue of the daemon.
///
/// An attempt that exceeds the queue's timeout no longer blocks the others.
final class ConnectTurns: Sendable {
    private struct State: Sendable {
        var queue: ConnectQueue
        /// The adapter of each peripheral that waits or connects.
        var adapters: [String: BluetoothAddress] = [:]

        /// Grants all turns that are free; returns the peripherals that have one.
        mutating func grant(at now: Duration) -> Set<String> {
            let adapters = adapters
            while queue.next(at: now, adapters: Set(adapters.values), place: { adapters[$0] }) != nil {}
            return queue.connecting
        }
    }

    private let state: Locked<State>
    /// The peripherals that have a turn.
    private let granted = LatestValue<Set<String>>([])
    private let start = ContinuousClock.now

    /// The wait for a turn after which a scan for the peripheral starts; short waits need none.
    private let scanDelay: Duration

    init(_ queue: ConnectQueue = ConnectQueue(), scanDelay: Duration = .seconds(2)) {
        state = Locked(State(queue: queue))
        self.scanDelay = scanDelay
    }

    /// The number of peripherals that wait or connect.
    var count: Int { state.withLock { $0.adapters.count } }

    /// A request for a turn.
    struct Request: Sendable {
        /// The peripheral; it has at most one attempt at a time.
        let peripheral: PeripheralID
        /// The number of consecutive failures; the first may be the loss of its link.
        var failures: Int
        /// The end of the wait for the turn; `nil` for none.
        let deadline: ContinuousClock.Instant?
        /// The error at the deadline.
        let late: BluetoothError
        /// Returns true as soon as a peripheral that may be absent is heard; `nil` for all others.
        var hear: (@Sendable () async -> Bool)?

        fileprivate var name: String { "\(peripheral.adapter) \(peripheral.address)" }

        /// The request of a peripheral that counts as failing until it is heard: absent ones have few turns at once.
        func absent(hear: @escaping @Sendable () async -> Bool) -> Request {
            var request = self
            (request.failures, request.hear) = (max(failures, 2), hear)
            return request
        }
    }

    /// Runs one attempt to connect in its turn.
    ///
    /// - Throws: The error of the attempt; that of the request at its deadline; `cancelled`.
    func perform(
        _ request: Request,
        _ attempt: () async throws(BluetoothError) -> Void
    ) async throws(BluetoothError) {
        let name = request.name
        grant { [now] state in
            state.adapters[name] = request.peripheral.adapter
            state.queue.add(name, failures: request.failures, at: now)
        }
        defer {
            grant { state in
                state.adapters[name] = nil
                state.queue.remove(name)
            }
        }
        guard try await hasTurn(request) else { throw BluetoothError(.cancelled, "cancelled") }
        try await attempt()
    }

    /// Waits for the turn until the deadline; false if the task is cancelled.
    private func hasTurn(_ request: Request) async throws(BluetoothError) -> Bool {
        guard let deadline = request.deadline else { return await turn(of: request) }
        return try await withDeadline(deadline, request.late) { await self.turn(of: request) } ?? false
    }

    private var now: Duration { start.duration(to: .now) }

    private func grant(after change: (inout State) -> Void = { _ in }) {
        granted.update { granted in
            granted = state.withLock { state in
                change(&state)
                return state.grant(at: now)
            }
        }
    }

    /// Waits for the turn; false if the task is cancelled.
    private func turn(of request: Request) async -> Bool {
        let name = request.name
        // A peripheral that need not wait needs no scan, however short the delay is.
        if state.withLock({ $0.queue.connecting.contains(name) }) { return !Task.isCancelled }
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await granted in self.granted.watch() where granted.contains(name) { return true }
                return false
            }
            group.addTask {
                await self.grantAtDeadlines()
                return false
            }
            if let hear = request.hear {
                group.addTask {
                    await self.raise(name, when: hear)
                    return false
                }
            }
            for await hasTurn in group where hasTurn {
                group.cancelAll()
                return true
            }
            return false
        }
    }

    /// Moves a peripheral that has waited for a while before all failing ones once it is heard.
    private func raise(_ name: String, when hear: @Sendable () async -> Bool) async {
        guard (try? await Task.sleep(for: scanDelay)) != nil, await hear() else { return }
        grant { [now] state in
            guard state.adapters[name] != nil, !state.queue.connecting.contains(name) else { return }
            state.queue.remove(name)
            state.queue.add(name, failures: 0, at: now)
        }
    }

    /// Grants turns whenever an attempt exceeds the timeout, until the task is cancelled.
    private func grantAtDeadlines() async {
        for await _ in granted.watch() {
            while let end = state.withLock({ [now] in $0.queue.deadline(after: now) }),
                (try? await Task.sleep(until: start.advanced(by: end), clock: .continuous)) != nil
            {
                grant()
            }
        }
    }
}
