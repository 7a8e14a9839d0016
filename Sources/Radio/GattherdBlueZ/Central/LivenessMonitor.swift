import GattherdSync

/// The liveness checks of bluetoothd; on the Bluetooth thread only.
///
/// A hanging bluetoothd keeps its name and its sockets, so while all devices are ready only these checks detect it.
final class LivenessMonitor {
    /// The number of unanswered checks after which bluetoothd counts as hung.
    private static let maximumMisses = 2

    private let client: BluetoothdClient
    private let objects: BlueZObjects
    private let loop: EventLoop
    private let limits: BlueZCentral.Limits
    /// True if bluetoothd sent anything since the last check.
    private var hasReceived = false
    private var misses = 0
    private var timer: LoopTimer?
    /// Called when bluetoothd hangs; `nil` while monitoring is off.
    private var onHang: (() -> Void)?
    /// The callers that wait for the result of the current check.
    private var waiters: [CheckedContinuation<Bool, Never>] = []

    init(_ client: BluetoothdClient, _ objects: BlueZObjects, on loop: EventLoop, limits: BlueZCentral.Limits) {
        (self.client, self.objects, self.loop, self.limits) = (client, objects, loop, limits)
    }

    /// Records a message of bluetoothd.
    func recordMessage() {
        hasReceived = true
    }

    // MARK: - Regular checks

    /// Calls a silent bluetoothd from time to time; calls `onHang` once when it does not answer.
    func start(onHang: @escaping () -> Void) {
        stop()
        self.onHang = onHang
        misses = 0
        scheduleCheck()
    }

    func stop() {
        onHang = nil
        if let timer = timer.take() { loop.cancel(timer) }
    }

    private func scheduleCheck() {
        timer = loop.schedule(after: misses == 0 ? limits.livenessInterval : limits.operation) { [weak self] in
            self?.checkIfSilent()
        }
    }

    private func checkIfSilent() {
        guard objects.isLoaded, !hasReceived else {
            (hasReceived, misses) = (false, 0)
            return scheduleCheck()
        }
        client.ping(within: limits.operation) { [weak self] isAlive in self?.finishCheck(isAlive) }
    }

    private func finishCheck(_ isAlive: Bool) {
        guard let onHang else { return }
        misses = isAlive ? 0 : misses + 1
        if misses == Self.maximumMisses { onHang() } else { scheduleCheck() }
    }

    // MARK: - Checks on request

    /// Returns true if bluetoothd answers, or is known to be away; concurrent callers share one check.
    func isResponsive() async -> Bool {
        guard objects.isLoaded, let owner = client.owner else { return true }
        let hasAnswered = await withCheckedContinuation { continuation in
            waiters.append(continuation)
            guard waiters.count == 1 else { return }
            client.ping(within: limits.livenessCheck) { [self] isAlive in
                let waiting = waiters
                waiters.removeAll()
                for waiter in waiting { waiter.resume(returning: isAlive) }
            }
        }
        // A bluetoothd that was replaced meanwhile is known to be away.
        return hasAnswered || owner != client.owner
    }
}
