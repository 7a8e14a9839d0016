import GattherdBluetooth
import GattherdModel

/// One characteristic's way from BlueZ to its subscribers, by signals or by a socket.
final class NotificationChannel {
    struct Subscriber {
        let token: SubscriptionToken
        let sink: any NotificationSink
    }

    let path: String
    let peripheral: PeripheralID
    private let burst: SinkNotifier
    private(set) var subscribers: [Subscriber] = []
    /// Whether `Value` signals are notifications; while a socket is there they are somebody's reads.
    var takesSignals = false
    var socket: NotificationSocket?
    /// True once BlueZ has confirmed that signals come.
    var isConfirmed = false
    /// The last subscriber wants no more; who comes now needs another channel.
    var isEnding = false
    /// Our own reads of the characteristic that have no answer yet.
    var openReads = 0
    /// The filter that separates notifications from copies and from read values.
    var sieve: NotificationFilter
    /// The gap count at which nobody had notifications, just before we started ours.
    var gapsWhenQuiet: UInt64?
    /// True while it is planned to decide what waits for proof.
    var awaitsDecision = false

    init(_ characteristic: RemoteCharacteristic, path: String, burst: SinkNotifier) {
        self.path = path
        peripheral = characteristic.peripheral
        self.burst = burst
        let properties = characteristic.properties
        sieve = NotificationFilter(isReadable: properties.isEmpty || properties.contains(.read))
    }

    func add(_ subscriber: Subscriber) {
        remove(subscriber.token)
        subscribers.append(subscriber)
    }

    func remove(_ token: SubscriptionToken) {
        subscribers.removeAll { $0.token == token }
    }

    /// Takes the value of a signal, see ``NotificationFilter/take(_:at:follows:gaps:)``.
    func receive(_ octets: Span<UInt8>, at time: Timestamp, follows: Bool, gaps: UInt64) {
        guard takesSignals else { return }
        guard openReads > 0 || !sieve.passes(at: gaps) else { return deliver(octets, at: time) }
        deliver(sieve.take(octets.indices.map { octets[$0] }, at: time, follows: follows, gaps: gaps))
    }

    /// Ends the growth of the run of signals, see ``NotificationFilter/complete()``.
    func completeRun() {
        sieve.complete()
    }

    /// Ends the run of signals; `isAnswered` if a message to another client came next.
    func endRun(isAnswered: Bool) {
        deliver(sieve.endRun(isAnswered: isAnswered))
    }

    /// Decides what has waited long enough for proof.
    func decide() {
        awaitsDecision = false
        deliver(sieve.decide())
    }

    private func deliver(_ values: [NotificationFilter.Delivery]) {
        for value in values {
            guard value.mayBeRead else {
                deliver(value.octets.span, at: value.time)
                continue
            }
            for subscriber in subscribers {
                subscriber.sink.receiveRead(value.octets.span, for: subscriber.token, at: value.time)
                burst.note(subscriber.sink)
            }
        }
    }

    /// Takes a value of the socket.
    func deliver(_ octets: Span<UInt8>, at time: Timestamp) {
        for subscriber in subscribers {
            subscriber.sink.receive(octets, for: subscriber.token, at: time)
            burst.note(subscriber.sink)
        }
    }

    /// Ends a read of ours; `octets` is `nil` when it failed.
    ///
    /// BlueZ signals the value right before it answers: only the last signal can be it, and only if it is equal.
    func readEnded(_ octets: [UInt8]?) {
        if let octets { sieve.takeAnswer(octets) }
    }

    /// Ends the channel; what the socket still holds is delivered first.
    func close() {
        deliver(sieve.flush())
        socket?.close()
        socket = nil
    }
}
