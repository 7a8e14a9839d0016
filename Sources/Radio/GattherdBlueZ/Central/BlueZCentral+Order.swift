import GattherdBluetooth
import GattherdDBus
import GattherdModel
import GattherdSync

/// The order of bluetoothd's messages, by their serial numbers.
struct MessageOrder {
    private var last: UInt32?
    /// The number of gaps: places where at least one message went to another client.
    private(set) var gaps: UInt64 = 0

    /// Records a message; true if it is the next one after the last.
    mutating func record(_ serial: UInt32) -> Bool {
        defer { last = serial }
        // Zero is no serial number.
        if let last, serial == max(1, last &+ 1) { return true }
        gaps += 1
        return false
    }
}

// Conclusions about values from the order of bluetoothd's messages.
extension BlueZCentral {
    /// The longest wait of a run for the next message, while messages are read in groups.
    private static let probeDelay = Duration.milliseconds(5)
    /// The longest wait of ended runs for others that show the number of copies.
    private static let decisionDelay = Duration.seconds(2)
    /// So many round trips give bluetoothd's loop time to hand on what it is at.
    private static let catchUpRounds = 3

    /// Takes a message that is no signal: it ends the run of signals before it.
    func receiveOther(_ serial: UInt32, from sender: String) {
        guard sender == owner else { return }
        endRun(isAnswered: !order.record(serial))
    }

    /// Gives a signal's value to its channel; the run of another channel, or before a gap, ends.
    func pass(_ octets: Span<UInt8>, to channel: NotificationChannel, follows: Bool) {
        if sifting !== channel || !follows { endRun(isAnswered: !follows) }
        channel.receive(octets, at: .now, follows: follows, gaps: order.gaps)
        awaitDecision(channel)
        guard channel.sieve.hasOpenRun else { return }
        sifting = channel
        probe(after: .zero)
    }

    /// Ends the run of signals that is open, if one is.
    func endRun(isAnswered: Bool) {
        guard let channel = sifting.take() else { return }
        channel.endRun(isAnswered: isAnswered)
        awaitDecision(channel)
    }

    private func awaitDecision(_ channel: NotificationChannel) {
        guard channel.sieve.isUndecided, !channel.awaitsDecision else { return }
        channel.awaitsDecision = true
        loop.schedule(after: Self.decisionDelay) { [weak channel] in channel?.decide() }
    }

    /// Asks bluetoothd for a message if none comes by itself: an answer ends the run as well.
    ///
    /// The sooner it does, the less probable is a message to another client in between that has nothing to do with the run.
    private func probe(after delay: Duration) {
        guard !isProbing else { return }
        isProbing = true
        loop.schedule(after: delay) { [weak self] in self?.assumeIsolated { $0.probe() } }
    }

    private func probe() {
        isProbing = false
        guard sifting?.sieve.hasOpenRun == true, let bus, let owner else { return }
        // More is about to be read in any case.
        guard !bus.isPausing else { return probe(after: Self.probeDelay) }
        isProbing = true
        bus.ask(owner, "/", "org.freedesktop.DBus.Peer", "Ping", timeout: limits.operation) { [weak self] outcome in
            self?.assumeIsolated { central in
                central.isProbing = false
                // Without an answer nothing more is known, and values must not wait for ever.
                let isUnanswered = [DBusError.timeoutName, DBusError.disconnectedName]
                guard case .failure(let error) = outcome, isUnanswered.contains(error.name) else { return }
                central.endRun(isAnswered: false)
            }
        }
    }

    /// Calls `StartNotify`, and finds out whether another client has notifications already.
    func startNotifying(_ channel: NotificationChannel) async throws(DBusError) {
        let path = channel.path
        askForOthers(path)
        try await call(
            path,
            BlueZ.characteristic,
            "StartNotify",
            onReply: { [weak self] outcome in
                guard case .success = outcome else { return }
                self?.assumeIsolated { $0.noteStart(path) }
            }
        )
    }

    private func askForOthers(_ path: String) {
        guard let bus, let owner else { return }
        let property: [DBusValue] = [.string(BlueZ.characteristic), .string("Notifying")]
        bus.ask(owner, path, BlueZ.properties, "Get", property, timeout: limits.operation) { [weak self] outcome in
            let isNotifying = try? outcome.get().first?.bool
            self?.assumeIsolated { $0.channels[path]?.gapsWhenQuiet = isNotifying == false ? $0.order.gaps : nil }
        }
    }

    private func noteStart(_ path: String) {
        guard let channel = channels[path], let gaps = channel.gapsWhenQuiet, gaps == order.gaps else { return }
        channel.sieve.startAlone(at: gaps)
    }

    public func catchUp(within limit: Duration) async {
        let deadline = SuspendingClock.now + limit
        for _ in 0..<Self.catchUpRounds {
            let rest = deadline - SuspendingClock.now
            guard isLoaded, rest > .zero else { return }
            _ = try? await call("/", "org.freedesktop.DBus.Peer", "Ping", within: rest)
        }
        for path in Set(paths.values) { channels[path]?.socket?.receiveWaiting() }
    }
}
