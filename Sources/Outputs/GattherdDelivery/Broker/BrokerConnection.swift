import GattherdMQTT
import GattherdMachines
import GattherdSync

/// A connection on the event loop: watches the socket, delays reading while acknowledgements gather, and keeps alive.
///
/// On the loop's thread only.
final class BrokerConnection {
    /// The number of readings in flight from which acknowledgements are gathered.
    private static let severalReadings = 8

    /// The connection without the loop.
    let mqtt: MQTTConnection
    private let context: DeliveryContext
    private let keepalive: DeadlineTimer
    /// The readiness that the loop watches for; `nil` before it watches.
    private var watched: DescriptorEvents?
    private var handler: (DescriptorEvents) -> Void = { _ in }
    /// True while acknowledgements accumulate before they are read.
    private var isGathering = false
    private(set) var isClosed = false

    init(_ mqtt: MQTTConnection, _ context: DeliveryContext) {
        self.mqtt = mqtt
        self.context = context
        keepalive = DeadlineTimer(context)
    }

    /// Calls `handler` whenever the socket is ready, from the next ``watch()`` on.
    func start(_ handler: @escaping (DescriptorEvents) -> Void) {
        self.handler = handler
    }

    /// Watches the socket for the readiness that the connection needs now.
    func watch() throws(WatchError) {
        guard !isClosed else { return }
        let interest = isGathering ? mqtt.interest.subtracting(.readable) : mqtt.interest
        guard interest != watched else { return }
        if watched == nil {
            try context.loop.watch(mqtt.descriptor, for: interest) { [weak self] in self?.handler($0) }
        } else {
            try context.loop.rewatch(mqtt.descriptor, for: interest)
        }
        watched = interest
    }

    /// Delays reading while acknowledgements arrive one by one; reading each would cost more than publishing.
    ///
    /// - Parameters:
    /// - readings: The number of readings in flight.
    /// - isCatchingUp: True if the broker limits the rate; the delay is then short.
    func gatherAcknowledgements(of readings: Int, isCatchingUp: Bool) {
        guard !isGathering, !isClosed, readings >= Self.severalReadings else { return }
        isGathering = true
        // The time in which a local broker acknowledges the readings while it also serves subscribers.
        let pause = Duration.microseconds(isCatchingUp ? 150 : 200 + 25 * min(readings, 100))
        context.loop.schedule(after: pause) { [weak self] in self?.stopGathering() }
    }

    private func stopGathering() {
        guard !isClosed else { return }
        isGathering = false
        handler(.readable)
    }

    /// Pings the broker when it is due, with no wakeup more often.
    ///
    /// - Parameter ticked: Called after each ping, or with the error of a silent broker.
    func keepAlive(_ ticked: @escaping (MQTTConnectionError?) -> Void) {
        keepalive.set(isClosed ? nil : mqtt.deadline) { [weak self] in self?.tick(ticked) }
    }

    private func tick(_ ticked: @escaping (MQTTConnectionError?) -> Void) {
        do throws(MQTTConnectionError) {
            try mqtt.tick(at: context.now)
        } catch {
            return ticked(error)
        }
        ticked(nil)
        keepAlive(ticked)
    }

    /// Closes the connection.
    ///
    /// - Parameter isClean: True to send DISCONNECT if everything before it is sent; otherwise the broker publishes the
    ///   will.
    func close(isClean: Bool) {
        guard !isClosed else { return }
        if isClean, mqtt.isClear { mqtt.disconnect(at: context.now) }
        isClosed = true
        if watched != nil { context.loop.unwatch(mqtt.descriptor) }
        keepalive.set(nil)
    }
}
