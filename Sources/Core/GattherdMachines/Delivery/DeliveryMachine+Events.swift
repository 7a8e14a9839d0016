public import GattherdModel

extension DeliveryMachine {
    /// An input of the machine; `session` distinguishes events of earlier sessions.
    public enum Event: Hashable, Sendable {
        case start
        /// Stop after publishing the remaining readings for at most `drain`.
        case stop(drain: Duration)
        case cursorLoaded(Int64)
        /// The newest committed `seq`.
        case headMoved(Int64)
        /// The journal's answer to ``Effect/fetch(after:limit:)``; readings in `skipping` are not published.
        case fetched([JournalReading], skipping: Set<Int64> = [])
        case saved(Int64)
        /// The journal could not load, fetch or save.
        case logFailed(LogOperation)
        /// A CONNACK; `receiveMaximum` is the broker's own window.
        case connected(session: Int, receiveMaximum: Int)
        /// The limit of unacknowledged readings changed, set by the broker or by caution.
        case windowChanged(session: Int, receiveMaximum: Int)
        /// The retained state is published: readings may follow.
        case opened(session: Int)
        case failed(session: Int, BrokerFault)
        case settled(session: Int, [PublishOutcome])
        /// The device was removed.
        case dismissed(device: String)
        /// The broker acknowledged the last retained `offline`.
        case farewellSaid(session: Int)
        /// The time of ``deadline`` has come.
        case tick
    }

    public enum LogOperation: String, Hashable, Sendable {
        case load
        case fetch
        case save
    }

    public enum Effect: Hashable, Sendable {
        case loadCursor
        case fetch(after: Int64, limit: Int)
        case save(Int64)
        /// Create a client and connect it.
        case connect(session: Int)
        /// Publish the retained state and subscribe, then send ``Event/opened(session:)``.
        case open(session: Int)
        /// Publish these readings in order; `again` of them were published before.
        case publish(session: Int, [JournalReading], again: Int)
        /// Publish `offline` for all devices, then send ``Event/farewellSaid(session:)``.
        case sayFarewell(session: Int)
        /// Send DISCONNECT if the connection is good, and free the client.
        case close(session: Int)
        case report(Report)
        /// The delivery has ended.
        case finish
    }

    /// An occurrence worth a log line.
    public enum Report: Hashable, Sendable {
        case connected
        case disconnected(BrokerFault, retryAfter: Duration)
        /// The broker refused this reading permanently; it is skipped.
        case skipped(JournalReading, String)
        /// The broker did not acknowledge this reading in time; the session ends.
        case unacknowledged(JournalReading)
        /// Delivery pauses because the broker is busy.
        case busy(String)
        /// Delivery pauses after a reconnect because the subscribers of this reading are missing.
        case awaitingSubscribers(JournalReading)
        /// No subscriber returned in time; delivery continues without them.
        case goingOnWithoutSubscribers
    }

    /// The reason why readings wait in a session.
    public enum Pause: Hashable, Sendable {
        /// The pause after a reconnect in which subscribers may return.
        case settling
        /// No subscriber has returned to the topics that had some.
        case awaitingSubscribers
        /// The broker does not accept readings now.
        case busy
    }

    /// The phase of the session.
    public enum Session: Hashable, Sendable {
        case idle
        case connecting
        case connected
        case backingOff(BrokerFault)
        case stopping
        case stopped
    }
}
