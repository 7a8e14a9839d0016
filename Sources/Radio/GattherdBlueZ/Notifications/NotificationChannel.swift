import GattherdBluetooth
import GattherdModel
import GattherdSync

/// The path of one characteristic's values from BlueZ to their subscribers, by signals or by a socket.
final class NotificationChannel {
    struct Subscriber {
        let token: SubscriptionToken
        let sink: any NotificationSink
    }

    let path: String
    let peripheral: PeripheralID
    private let notifier: SinkNotifier
    private(set) var subscribers: [Subscriber] = []
    /// True if `Value` signals are notifications; with a socket they are only values that were read.
    var takesSignals = false
    var socket: NotificationSocket?
    /// True from our `StartNotify` until its answer: a session that ends meanwhile is an earlier one.
    var isStarting = false
    /// True once BlueZ has confirmed that signals come.
    var isConfirmed = false
    /// True once the last subscriber has left; a new subscriber needs another channel.
    var isEnding = false
    /// The number of our unanswered reads of the characteristic.
    var openReads = 0
    private var filter: NotificationFilter
    /// The number of gaps just before our `StartNotify`, if no client had notifications then.
    private var gapsWhenQuiet: UInt64?
    /// The number of the last decision about values without proof.
    private var decision = 0
    /// True from its scheduling until it is made, or until no value needs it any more.
    private var isDecisionDue = false

    init(_ characteristic: RemoteCharacteristic, path: String, notifier: SinkNotifier) {
        self.path = path
        peripheral = characteristic.peripheral
        self.notifier = notifier
        let properties = characteristic.properties
        filter = NotificationFilter(isReadable: properties.isEmpty || properties.contains(.read))
    }

    func add(_ subscriber: Subscriber) {
        remove(subscriber.token)
        subscribers.append(subscriber)
    }

    func remove(_ token: SubscriptionToken) {
        subscribers.removeAll { $0.token == token }
    }

    /// Records the number of gaps just before `StartNotify` if no client has notifications; else `nil`.
    func recordQuiet(at gaps: UInt64?) {
        gapsWhenQuiet = gaps
    }

    /// Records that `StartNotify` succeeded at this number of gaps.
    func recordStart(at gaps: UInt64) {
        if gaps == gapsWhenQuiet { filter.startAlone(at: gaps) }
    }

    // MARK: - Signals

    /// True while signals wait for the next message of bluetoothd.
    var hasOpenRun: Bool { filter.hasOpenRun }

    /// Handles the value of a signal, see ``NotificationFilter/receive(_:at:follows:gaps:)``.
    func receive(_ octets: Span<UInt8>, at time: Timestamp, follows: Bool, gaps: UInt64) {
        guard takesSignals else { return }
        guard openReads > 0 || !filter.passes(at: gaps) else { return deliver(octets, at: time) }
        deliver(filter.receive(octets.indices.map { octets[$0] }, at: time, follows: follows, gaps: gaps))
    }

    /// Ends the growth of the run of signals, see ``NotificationFilter/complete()``.
    func completeRun() {
        filter.complete()
    }

    /// Ends the run of signals.
    ///
    /// - Parameter isAnswered: True if bluetoothd's next message went to another client.
    func endRun(isAnswered: Bool) {
        deliver(filter.endRun(isAnswered: isAnswered))
    }

    /// Returns the number of a decision to be scheduled, if values wait for evidence of later signals and none is due.
    ///
    /// A decision becomes void when evidence has decided about its values, so that later ones wait for their full time.
    func startDecision() -> Int? {
        let wasDue = isDecisionDue
        isDecisionDue = filter.isUndecided
        guard isDecisionDue, !wasDue else { return nil }
        decision += 1
        return decision
    }

    /// True unless the decision is void.
    func awaitsDecision(_ number: Int) -> Bool { isDecisionDue && number == decision }

    /// Makes a scheduled decision, unless it is void.
    func decide(_ number: Int) {
        if awaitsDecision(number) { decide() }
    }

    /// Delivers the values that wait for evidence.
    func decide() {
        isDecisionDue = false
        deliver(filter.decide())
    }

    /// Ends our own read; `octets` is `nil` if it failed.
    ///
    /// BlueZ signals the value right before it answers: only the last signal can be the echo, and only if it is equal.
    func readEnded(_ octets: [UInt8]?) {
        if let octets { filter.removeEcho(of: octets) }
    }

    // MARK: - Deliveries

    private func deliver(_ values: [NotificationFilter.Delivery]) {
        for value in values {
            guard value.mayBeRead else {
                deliver(value.octets.span, at: value.time)
                continue
            }
            for subscriber in subscribers {
                subscriber.sink.receiveRead(value.octets.span, for: subscriber.token, at: value.time)
                notifier.add(subscriber.sink)
            }
        }
    }

    /// Delivers a value of the socket.
    func deliver(_ octets: Span<UInt8>, at time: Timestamp) {
        for subscriber in subscribers {
            subscriber.sink.receive(octets, for: subscriber.token, at: time)
            notifier.add(subscriber.sink)
        }
    }

    /// Uses another socket from now on; the previous one is closed.
    func replaceSocket(by socket: NotificationSocket) {
        self.socket?.close()
        self.socket = socket
    }

    /// Closes the channel after it has delivered the values that are still in the socket.
    func close() {
        deliver(filter.flush())
        socket?.close()
        socket = nil
    }
}

/// The sinks that received values in this turn of the loop; all are flushed once when the turn is over.
final class SinkNotifier {
    private let loop: EventLoop
    private var sinks: [any NotificationSink] = []

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// Records that `sink` has received a value; on the Bluetooth thread only.
    func add(_ sink: any NotificationSink) {
        guard !sinks.contains(where: { $0 === sink }) else { return }
        sinks.append(sink)
        if sinks.count == 1 { loop.schedule(after: .zero) { [self] in flush() } }
    }

    private func flush() {
        for sink in sinks { sink.flush() }
        sinks.removeAll(keepingCapacity: true)
    }
}
