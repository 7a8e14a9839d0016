package import GattherdSync

/// A connection on an event loop: watches the socket, delays reading on request, and keeps alive.
///
/// On the loop's thread only.
package final class LoopConnection {
    /// The connection without the loop.
    package let mqtt: MQTTConnection
    private let time: LoopTime
    private let keepalive: DeadlineTimer
    /// The readiness that the loop watches for; `nil` before it watches.
    private var watched: DescriptorEvents?
    private var handler: (DescriptorEvents) -> Void = { _ in }
    /// True while packets accumulate before they are read.
    private var isReadingDelayed = false
    package private(set) var isClosed = false

    package init(_ mqtt: MQTTConnection, _ time: LoopTime) {
        self.mqtt = mqtt
        self.time = time
        keepalive = DeadlineTimer(time)
    }

    /// Calls `handler` whenever the socket is ready, from the next ``watch()`` on.
    package func start(_ handler: @escaping (DescriptorEvents) -> Void) {
        self.handler = handler
    }

    /// Watches the socket for the readiness that the connection needs now.
    package func watch() throws(WatchError) {
        guard !isClosed else { return }
        let interest = isReadingDelayed ? mqtt.interest.subtracting(.readable) : mqtt.interest
        guard interest != watched else { return }
        if watched == nil {
            try time.loop.watch(mqtt.descriptor, for: interest) { [weak self] in self?.handler($0) }
        } else {
            try time.loop.rewatch(mqtt.descriptor, for: interest)
        }
        watched = interest
    }

    /// Reads nothing for `pause`, so that packets accumulate, unless reading is already delayed.
    package func delayReading(by pause: Duration) {
        guard !isReadingDelayed, !isClosed else { return }
        isReadingDelayed = true
        time.loop.schedule(after: pause) { [weak self] in self?.resumeReading() }
    }

    private func resumeReading() {
        guard !isClosed else { return }
        isReadingDelayed = false
        handler(.readable)
    }

    /// Pings the broker when it is due, with no wakeup more often.
    ///
    /// - Parameter ticked: Called after each ping, or with the error of a silent broker.
    package func keepAlive(_ ticked: @escaping (MQTTConnectionError?) -> Void) {
        keepalive.set(isClosed ? nil : mqtt.deadline) { [weak self] in self?.tick(ticked) }
    }

    private func tick(_ ticked: @escaping (MQTTConnectionError?) -> Void) {
        do throws(MQTTConnectionError) {
            try mqtt.tick(at: time.now)
        } catch {
            return ticked(error)
        }
        ticked(nil)
        keepAlive(ticked)
    }

    /// Closes the connection.
    ///
    /// - Parameter reason: The reason for DISCONNECT, which is sent if everything before it can be sent at once; `nil`
    /// sends none, so that the broker publishes the will.
    package func close(_ reason: MQTTReason?) {
        guard !isClosed else { return }
        if let reason { mqtt.disconnect(at: time.now, reason) }
        isClosed = true
        if watched != nil { time.loop.unwatch(mqtt.descriptor) }
        keepalive.set(nil)
    }
}
