package import GattherdSync

/// A connection on an event loop: watches the socket, delays reading on request, and keeps alive.
///
/// On the loop's thread only.
package final class LoopConnection {
    /// The reason why the connection cannot go on.
    package enum Failure {
        case lost(MQTTConnectionError)
        /// The loop cannot watch the socket.
        case unwatched(WatchError)
    }

    /// The connection without the loop.
    package let mqtt: MQTTConnection
    private let time: LoopTime
    private let keepalive: DeadlineTimer
    /// The readiness that the loop watches for; `nil` before it watches.
    private var watched: DescriptorEvents?
    private var ready: (Bool) -> Void = { _ in }
    private var failed: (Failure) -> Void = { _ in }
    /// True while packets accumulate before they are read.
    private var isReadingDelayed = false
    package private(set) var isClosed = false

    package init(_ mqtt: MQTTConnection, _ time: LoopTime) {
        self.mqtt = mqtt
        self.time = time
        keepalive = DeadlineTimer(time)
    }

    /// Reports to the owner from the next ``watch()`` or ``flush()`` on.
    ///
    /// - Parameters:
    ///   - ready: Called when the socket is ready, with true if there may be something to read. Reading comes first:
    ///     the broker's last packet may explain why writing fails.
    ///   - failed: Called with the reason why the connection cannot go on.
    package func start(ready: @escaping (_ canRead: Bool) -> Void, failed: @escaping (Failure) -> Void) {
        (self.ready, self.failed) = (ready, failed)
    }

    // MARK: - Readiness

    /// Watches the socket for the readiness that the connection needs now.
    package func watch() {
        guard !isClosed else { return }
        let interest = isReadingDelayed ? mqtt.interest.subtracting(.readable) : mqtt.interest
        guard interest != watched else { return }
        do throws(WatchError) {
            try watch(for: interest)
            watched = interest
        } catch {
            failed(.unwatched(error))
        }
    }

    private func watch(for interest: DescriptorEvents) throws(WatchError) {
        guard watched == nil else { return try time.loop.rewatch(mqtt.descriptor, for: interest) }
        try time.loop.watch(mqtt.descriptor, for: interest) { [weak self] in self?.socketIsReady($0) }
    }

    private func socketIsReady(_ events: DescriptorEvents) {
        if !events.isDisjoint(with: [.hangUp, .error]) { mqtt.endSending() }
        ready(events != .writable)
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
        ready(true)
    }

    // MARK: - Sending

    /// Sends the waiting bytes; returns false if the connection is closed, or fails now.
    @discardableResult
    package func flush() -> Bool {
        guard !isClosed else { return false }
        do throws(MQTTConnectionError) {
            try mqtt.flush(at: time.now)
            return true
        } catch {
            failed(.lost(error))
            return false
        }
    }

    /// Pings the broker when it is due, with no wakeup more often.
    package func keepAlive() {
        keepalive.set(isClosed ? nil : mqtt.deadline) { [weak self] in self?.tick() }
    }

    private func tick() {
        do throws(MQTTConnectionError) {
            try mqtt.tick(at: time.now)
        } catch {
            return failed(.lost(error))
        }
        watch()
        keepAlive()
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
