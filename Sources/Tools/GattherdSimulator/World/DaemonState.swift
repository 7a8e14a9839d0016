/// The state of the bluetoothd process.
struct DaemonState: Sendable {
    private enum Phase: Hashable, Sendable {
        case running, stopped
        /// The bus name is taken and calls are not answered yet.
        case starting
    }

    private var phase = Phase.running
    private var queuedCalls: [MethodCall] = []

    var isRunning: Bool { phase == .running }
    var isStarting: Bool { phase == .starting }

    /// Queues a call that arrived during the start.
    mutating func queue(_ call: MethodCall) {
        queuedCalls.append(call)
    }

    mutating func removeCalls(from client: String) {
        queuedCalls.removeAll { $0.sender == client }
    }

    mutating func stop() {
        phase = .stopped
        queuedCalls.removeAll()
    }

    mutating func start() {
        phase = .starting
    }

    /// Ends the start.
    ///
    /// Returns the calls that were queued meanwhile.
    mutating func serve() -> [MethodCall] {
        defer { queuedCalls.removeAll() }
        phase = .running
        return queuedCalls
    }
}
