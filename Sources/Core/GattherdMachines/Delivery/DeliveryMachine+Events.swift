public import GattherdModel

extension DeliveryMachine {
    /// Something that happened; `session` tells a late one from one of the present session.
    public enum Event: Hashable, Sendable {
        case start
        /// End, after what is left has been published for at most `drain`.
        case stop(drain: Duration)
        case cursorLoaded(Int64)
        /// The newest committed `seq`.
        case headMoved(Int64)
        /// The log's answer to ``Effect/fetch(after:limit:)``; `skipping` are those that nobody wants.
        case fetched([JournalReading], skipping: Set<Int64> = [])
        case saved(Int64)
        /// The log could not load, fetch or save.
        case logFailed(LogOperation)
        /// CONNACK; `receiveMaximum` is the broker's own window.
        case connected(session: Int, receiveMaximum: Int)
        /// The broker, or our caution, allows another number of unacknowledged readings from now on.
        case windowChanged(session: Int, receiveMaximum: Int)
        /// The retained state is handed over: readings may follow.
        case opened(session: Int)
        case failed(session: Int, BrokerFault)
        case settled(session: Int, [PublishOutcome])
        /// There is no such device any more.
        case dismissed(device: String)
        /// The broker has acknowledged the last retained `offline`.
        case farewellSaid(session: Int)
        /// ``deadline`` has come.
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
        /// Make a new client and connect it.
        case connect(session: Int)
        /// Publish the retained state and subscribe, then send ``Event/opened(session:)``.
        case open(session: Int)
        /// Publish these in order; `again` of them were published before.
        case publish(session: Int, [JournalReading], again: Int)
        /// Publish `offline` for all, then send ``Event/farewellSaid(session:)``.
        case sayFarewell(session: Int)
        /// Send DISCONNECT if the connection is good, and free the client.
        case close(session: Int)
        case report(Remark)
        /// Everything has ended.
        case finish
    }

    /// What people may want to know.
    public enum Remark: Hashable, Sendable {
        case connected
        case disconnected(BrokerFault, retryAfter: Duration)
        /// The broker refused this reading for good; it is skipped.
        case skipped(JournalReading, String)
        /// The broker has not acknowledged this reading in time; the session ends.
        case unacknowledged(JournalReading)
        /// Delivery pauses because the broker is busy.
        case busy(String)
        /// Delivery pauses after a reconnect because the subscribers of this reading are missing.
        case awaitingSubscribers(JournalReading)
        /// No subscriber returned in time; delivery goes on without them.
        case goingOnWithoutSubscribers
    }

    /// The reason why readings wait in a session.
    public enum Pause: Hashable, Sendable {
        /// The time after a reconnect in which subscribers may return.
        case settling
        /// Nobody has returned to the topics that had subscribers.
        case awaitingSubscribers
        /// The broker does not accept readings now.
        case busy
    }

    /// Where the session stands.
    public enum Session: Hashable, Sendable {
        case idle
        case connecting
        case connected
        case backingOff(BrokerFault)
        case stopping
        case stopped
    }
}
