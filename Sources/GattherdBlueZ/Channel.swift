import GattherdBluetooth
import GattherdModel

/// One characteristic's way from BlueZ to its subscribers, by signals or by a socket.
final class Channel {
    struct Subscriber {
        let token: SubscriptionToken
        let sink: any NotificationSink
    }

    let path: String
    let peripheral: PeripheralID
    private let burst: Burst
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
    /// The newest value that came while we read the characteristic ourselves: it may be that read's echo.
    private var held: (octets: [UInt8], time: Timestamp)?

    init(path: String, peripheral: PeripheralID, burst: Burst) {
        self.path = path
        self.peripheral = peripheral
        self.burst = burst
    }

    func add(_ subscriber: Subscriber) {
        remove(subscriber.token)
        subscribers.append(subscriber)
    }

    func remove(_ token: SubscriptionToken) {
        subscribers.removeAll { $0.token == token }
    }

    /// Takes the value of a signal.
    func receive(_ octets: Span<UInt8>, at time: Timestamp) {
        guard takesSignals else { return }
        guard openReads > 0 else { return deliver(octets, at: time) }
        releaseHeld()
        held = (octets.indices.map { octets[$0] }, time)
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
    /// BlueZ tells the value of every read as if it were a notification, right before it answers. So only the last
    /// value before the answer can be the echo, and only if it is equal; any other is a notification.
    func readEnded(_ octets: [UInt8]?) {
        if let octets, held?.octets == octets { held = nil }
        releaseHeld()
    }

    /// Ends the channel; what the socket still holds is delivered first.
    func close() {
        releaseHeld()
        socket?.close()
        socket = nil
    }

    private func releaseHeld() {
        guard let value = held.take() else { return }
        deliver(value.octets.span, at: value.time)
    }
}
