import GattherdBluetooth
import GattherdDBus
import GattherdSync

/// The order of bluetoothd's messages, by their serial numbers.
struct MessageOrder {
    private var last: UInt32?
    /// The number of gaps: places where at least one message went to another client.
    private(set) var gaps: UInt64 = 0

    /// Records a message; returns true if it is the next one after the last.
    mutating func record(_ serial: UInt32) -> Bool {
        defer { last = serial }
        // Zero is not a serial number.
        if let last, serial == max(1, last &+ 1) { return true }
        gaps += 1
        return false
    }
}

/// Passes values to their channels, with conclusions from the order of bluetoothd's messages.
///
/// On the Bluetooth thread only.
///
/// The run of signals that came last stays open until another message shows whether it was answered.
final class SignalSequencer {
    /// The longest wait of a run for the next message, while messages are read in groups.
    private static let probeDelay = Duration.milliseconds(5)
    /// The wait of ended runs for others that show the number of copies, before bluetoothd is asked for them.
    private static let decisionDelay = Duration.seconds(2)

    private let client: BluetoothdClient
    private let loop: EventLoop
    private var order = MessageOrder()
    /// The channel with the open run.
    private var openChannel: NotificationChannel?
    /// True while the next message of bluetoothd is being requested, or soon will be.
    private var isProbing = false

    init(_ client: BluetoothdClient, on loop: EventLoop) {
        (self.client, self.loop) = (client, loop)
    }

    /// The number of messages to other clients, at least.
    var gaps: UInt64 { order.gaps }

    /// Starts again with another bluetoothd.
    func reset() {
        (order, openChannel, isProbing) = (MessageOrder(), nil, false)
    }

    // MARK: - Messages

    /// Records a signal; returns true if no message to another client came before it.
    func record(_ serial: UInt32) -> Bool { order.record(serial) }

    /// Records a message that is not a signal: it ends the open run.
    func receiveOther(_ serial: UInt32) {
        endRun(isAnswered: !order.record(serial))
    }

    /// Handles the value of a signal; the run of another channel, or before a gap, ends.
    func receive(_ octets: Span<UInt8>, for channel: NotificationChannel, follows: Bool) {
        if openChannel !== channel || !follows { endRun(isAnswered: !follows) }
        channel.receive(octets, at: .now, follows: follows, gaps: order.gaps)
        scheduleDecision(for: channel)
        guard channel.hasOpenRun else { return }
        openChannel = channel
        probe(after: .zero)
    }

    /// Handles a signal without a value, which may have waited in bluetoothd until the answer after the run was sent.
    func receiveOtherSignal(follows: Bool) {
        if follows { openChannel?.completeRun() } else { endRun(isAnswered: true) }
    }

    /// Ends the open run, if any.
    func endRun(isAnswered: Bool) {
        guard let channel = openChannel.take() else { return }
        channel.endRun(isAnswered: isAnswered)
        scheduleDecision(for: channel)
    }

    private func scheduleDecision(for channel: NotificationChannel) {
        guard let number = channel.startDecision() else { return }
        loop.schedule(after: Self.decisionDelay) { [weak self, weak channel] in
            if let channel, channel.awaitsDecision(number) { self?.decide(number, about: channel) }
        }
    }

    /// Makes a decision once all signals that bluetoothd has sent until now are read: these may be the evidence.
    private func decide(_ number: Int, about channel: NotificationChannel) {
        client.ask("/", "org.freedesktop.DBus.Peer", "Ping") { [weak channel] _ in channel?.decide(number) }
    }

    // MARK: - Probes

    /// Requests a message of bluetoothd if none comes by itself: an answer ends the run as well.
    ///
    /// An early request makes an unrelated message to another client in between less probable.
    private func probe(after delay: Duration) {
        guard !isProbing else { return }
        isProbing = true
        loop.schedule(after: delay) { [weak self] in self?.probe() }
    }

    private func probe() {
        isProbing = false
        guard openChannel?.hasOpenRun == true, let bus = client.bus else { return }
        // More messages are about to be read in any case.
        guard !bus.isPausing else { return probe(after: Self.probeDelay) }
        isProbing = true
        client.ask("/", "org.freedesktop.DBus.Peer", "Ping") { [weak self] outcome in
            self?.probed(outcome)
        }
    }

    /// Ends the run if there was no answer, because values must not wait forever.
    private func probed(_ outcome: Result<[DBusValue], DBusError>) {
        isProbing = false
        let isUnanswered = [DBusError.timeoutName, DBusError.disconnectedName]
        guard case .failure(let error) = outcome, isUnanswered.contains(error.name) else { return }
        endRun(isAnswered: false)
    }
}
