extension DeliveryMachine {
    /// The durations and limits of a delivery; the defaults suit one gateway and one broker.
    public struct Options: Sendable {
        /// The maximum number of unacknowledged readings; the broker's receive maximum can lower it.
        public var window = 100
        public var connectTimeout = Duration.seconds(15)
        /// The pause after a lost or failed connection.
        public var backoff = Backoff(minimum: .milliseconds(500), maximum: .seconds(10))
        /// The pause after a refusal that needs a configuration change.
        public var refusedBackoff = Backoff(minimum: .seconds(10), maximum: .seconds(60))
        /// The duration after which a session counts as good, which resets the backoff.
        public var stableAfter = Duration.seconds(10)
        /// The pause after a reconnect, so that subscribers who lost the same broker are back as well.
        public var settle = Duration.seconds(2)
        /// The time before a lost connection whose acknowledged readings are published again (at most 1000).
        ///
        /// A broker that crashed has forgotten readings that it had acknowledged and not yet forwarded.
        public var replay = Duration.seconds(2)
        /// The time before a kill whose acknowledged readings the next run publishes again (at most 250).
        public var restartReplay = Duration.milliseconds(250)
        /// The maximum wait for missing subscribers after a reconnect, ``settle`` included (MQTT 5 only).
        public var subscriberPatience = Duration.seconds(5)
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
        public var busyPatience = Duration.seconds(60)
        /// The shortest wait for the answer to a ping, and for a broker that reads nothing.
        public var answerPatience = Duration.seconds(10)
        /// The pause after a journal failure.
        public var logPause = Duration.seconds(1)
        /// The maximum wait of a clean stop for the broker, and then for the journal.
        public var farewell = Duration.seconds(2)
        public var pace = TokenBucket()

        public init() {}
    }
}
