public import GattherdModel

extension DeliveryMachine {
    /// An input of the machine; `session` distinguishes events of earlier sessions.
    public enum Event: Hashable, Sendable {
        case start
        /// Stops after publishing the remaining readings for at most `drain`.
        case stop(drain: Duration)
        case cursorLoaded(Int64)
        /// The newest committed `seq`.
        case headMoved(Int64)
        /// The journal's answer to ``Effect/fetch(after:limit:)``, which has all readings up to the number `through`.
        case fetched([JournalReading], through: Int64, DeliverySelection = DeliverySelection())
        /// Delayed readings are to be published now.
        case released([Int64])
        case saved(Int64)
        /// The journal could not load, fetch or save.
        case journalFailed(JournalOperation)
        /// A CONNACK; `receiveMaximum` is the broker's own window.
        case connected(session: Int, receiveMaximum: Int)
        /// The limit of unacknowledged readings changed, set by the broker or by caution.
        case windowChanged(session: Int, receiveMaximum: Int)
        /// The retained state is published: readings may follow.
        case opened(session: Int)
        /// The broker sent the last will of an earlier session, so it has not crashed since.
        case lastWillFound(session: Int, of: Int)
        /// The host that had the last session refused a connection, so the broker was down.
        case brokerWasDown
        case failed(session: Int, BrokerFault)
        case answered(session: Int, [PublishOutcome])
        /// The device was removed.
        case dismissed(device: String)
        /// The broker acknowledged the last retained `offline`.
        case offlinePublished(session: Int)
        /// ``deadline`` has been reached.
        case tick
    }

    public enum JournalOperation: String, Hashable, Sendable {
        case load
        case fetch
        case save
    }

    public enum Effect: Hashable, Sendable {
        case loadCursor
        case fetch(after: Int64, limit: Int)
        case save(Int64)
        /// Creates a client and connects it.
        case connect(session: Int)
        /// Tries a connection at once to the address of the last session; ``Event/brokerWasDown`` follows if its host
        /// refuses.
        case probe
        /// Publishes the retained state and subscribes; ``Event/opened(session:)`` follows.
        case open(session: Int)
        /// Publishes these messages in order; `again` of their readings were published before.
        case publish(session: Int, [DeliveryMessage], again: Int)
        /// Publishes `offline` for all devices; ``Event/offlinePublished(session:)`` follows.
        case publishOffline(session: Int)
        /// Sends DISCONNECT if the connection is good, and frees the client.
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
        /// The broker refuses every reading, with this reason; the session ends.
        case acceptsNothing(String)
    }

    /// The reason why readings wait in a session.
    public enum Pause: Hashable, Sendable {
        /// The pause after a reconnect in which subscribers may return.
        case reconnected
        /// No subscriber has returned to the topics that had some.
        case awaitingSubscribers
        /// The broker does not accept readings now.
        case busy
        /// The broker refuses readings, and has accepted none since.
        case refused
    }

    /// The phase with its times.
    enum Phase: Hashable, Sendable {
        case idle
        case connecting(until: Duration)
        case connected(since: Duration)
        case backingOff(BrokerFault, until: Duration)
        /// `offline` is being published.
        case leaving(until: Duration)
        /// The cursor is being written for the last time.
        case closing(until: Duration)
        case stopped
    }

    /// The phase of the session.
    public enum SessionState: Hashable, Sendable {
        case idle
        case connecting
        case connected
        case backingOff(BrokerFault)
        case stopping
        case stopped
    }
}

extension DeliveryMachine {
    /// The durations and limits of a delivery; the defaults suit one gateway and one broker.
    public struct Options: Sendable {
        /// The maximum number of unacknowledged messages; the broker's receive maximum can lower it.
        public var window = 100
        public var connectTimeout = Duration.seconds(15)
        /// The pause after a lost or failed connection.
        public var backoff = Backoff(minimum: .milliseconds(500), maximum: .seconds(10))
        /// The pause after a refusal that needs a configuration change.
        public var refusedBackoff = Backoff(minimum: .seconds(10), maximum: .seconds(60))
        /// The duration after which a session counts as good, which resets the backoff.
        public var stableAfter = Duration.seconds(10)
        /// The pause after a reconnect, in which other subscribers reconnect to the broker as well.
        public var reconnectPause = Duration.seconds(2)
        /// The time before a lost connection whose acknowledged readings are published again: at most 1000, and those
        /// beyond the cursor.
        ///
        /// A broker that crashed may have lost readings that it had acknowledged and not yet forwarded.
        public var replay = Duration.seconds(2)
        /// The time before a kill whose acknowledged readings the next run publishes again (at most 250).
        public var restartReplay = Duration.milliseconds(250)
        /// The time for which the next run would publish a delayed reading, also if many others follow it.
        public var delayedReplay = Duration.seconds(60)
        /// The maximum wait for missing subscribers after a reconnect, ``reconnectPause`` included (MQTT 5 only).
        public var subscriberTimeout = Duration.seconds(5)
        /// The pause between two checks for missing subscribers.
        public var subscriberPause = Duration.milliseconds(250)
        /// The pause before a reading is sent to a busy broker again.
        public var retryPause = Duration.seconds(1)
        /// The maximum wait for the oldest acknowledgement; then the session is ended, because it may never come.
        public var acknowledgement = Duration.seconds(120)
        /// The shortest time between two writes of the cursor, unless it has passed ``saveCount`` readings.
        public var saveInterval = Duration.milliseconds(250)
        /// The number of readings after which the cursor is written at once.
        public var saveCount: Int64 = 250
        /// The search for topics that the broker refuses.
        public var topics = TopicRefusals.Options()
        /// The time for which the broker may answer "busy", or without a reason, before a topic's readings are
        /// skipped.
        public var busyTimeout = Duration.seconds(60)
        /// The number of readings that are skipped if the broker refuses one after the other; further ones are held.
        public var refusalLimit = 100
        /// The time for which the broker may refuse every reading before the session is ended.
        public var refusalTimeout = Duration.seconds(120)
        /// The shortest wait for the answer to a ping, and for a broker that reads nothing.
        public var answerTimeout = Duration.seconds(10)
        /// The pause after a journal failure.
        public var journalPause = Duration.seconds(1)
        /// The maximum wait of a clean stop for the broker, and then for the journal.
        public var stopLimit = Duration.seconds(2)
        public var pace = TokenBucket()

        public init() {}
    }
}

/// The decisions on fetched readings; all others are published at once, each in a message of its own.
public struct DeliverySelection: Hashable, Sendable {
    /// Readings that are not published.
    public var skipped: Set<Int64> = []
    /// Readings that are published later, unless a newer one of their stream is; see
    /// ``DeliveryMachine/Event/released(_:)``.
    public var delayed: Set<Int64> = []
    /// Delayed readings of earlier batches that are not published.
    public var dropped: [Int64] = []
    /// The times for which readings wait for others of their stream, to be published in one message.
    public var gathered: [Int64: Duration] = [:]

    public init(skipped: Set<Int64> = []) {
        self.skipped = skipped
    }

    /// True if every reading is published at once.
    var isEverything: Bool { skipped.isEmpty && delayed.isEmpty && gathered.isEmpty }
}

/// The broker's answer to one published reading.
public struct PublishOutcome: Hashable, Sendable {
    public enum Verdict: Hashable, Sendable {
        case accepted
        /// Accepted without a subscriber (MQTT 5 reason 0x10); MQTT 3.1.1 cannot report this.
        case noSubscribers
        /// Not accepted now: a quota, or a busy broker.
        case busy(String)
        /// Not sent yet: its topic waits until another one is accepted, or the session has just ended.
        case deferred
        /// Not sent yet: its message was full; it follows in another one.
        case remaining
        /// Permanently refused, for a reason that concerns this message only.
        case refused(String)
        /// Refused like all messages on its topic, while the broker accepts other topics.
        case setAside(String)
        /// Refused by a broker that has accepted nothing since; it may accept the reading later.
        case unproven(String)
    }

    public let seq: Int64
    public let verdict: Verdict
    /// False for a message of QoS 0: it was sent, but nothing shows that the broker has it.
    public let isConfirmed: Bool

    /// True if the broker has accepted the reading.
    public var isAcknowledgement: Bool { verdict == .accepted || verdict == .noSubscribers }

    public init(seq: Int64, _ verdict: Verdict, isConfirmed: Bool = true) {
        self.seq = seq
        self.verdict = verdict
        self.isConfirmed = isConfirmed
    }
}

/// The reason why there is no MQTT session, or why one ended.
public struct BrokerFault: Error, Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable {
        /// No broker was reached, or it did not answer.
        case unreachable
        /// There was a session, and it ended.
        case lost
        /// The broker answered, but is out of resources.
        case busy
        /// The broker rejects the user name or the password.
        case credentials
        /// The broker rejects the protocol version or the client id, or refuses every reading.
        case session
        /// TLS failed: a certificate, a file or a version.
        case security
    }

    public let kind: Kind
    /// The cause and the remedy, for display.
    public let detail: String
    /// True if the broker itself was down: it said that it stops, or the host that had the last session refused the
    /// connection.
    public let wasBrokerDown: Bool

    public init(_ kind: Kind, _ detail: String, wasBrokerDown: Bool = false) {
        self.kind = kind
        self.detail = detail
        self.wasBrokerDown = wasBrokerDown
    }

    /// True if the configuration must change before a retry can succeed.
    public var needsConfigurationChange: Bool {
        switch kind {
        case .credentials, .session, .security: true
        case .unreachable, .lost, .busy: false
        }
    }
}
