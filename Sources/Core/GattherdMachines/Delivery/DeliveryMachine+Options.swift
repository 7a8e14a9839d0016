extension DeliveryMachine {
    /// The durations and bounds of a delivery; the defaults are meant for one gateway and one broker.
    public struct Options: Sendable {
        /// Readings that may wait for their PUBACK at once; the broker's receive-maximum can lower it.
        public var window = 100
        public var connectTimeout = Duration.seconds(15)
        /// After a lost or failed connection.
        public var backoff = Backoff(minimum: .milliseconds(500), maximum: .seconds(10))
        /// After a refusal that somebody has to mend.
        public var refusedBackoff = Backoff(minimum: .seconds(10), maximum: .seconds(60))
        /// A session that lasted this long counts as good: the backoff starts anew.
        public var stableAfter = Duration.seconds(10)
        /// The pause after a reconnect, so that subscribers who lost the same broker are back as well.
        public var settle = Duration.seconds(2)
        /// Readings acknowledged this shortly before a connection was lost are published again (at most 1000): a
        /// broker that crashed forgot what it had acknowledged and not yet passed on.
        public var replay = Duration.seconds(2)
        /// Readings acknowledged this shortly before a kill are published again by the next run (at most 250).
        public var restartReplay = Duration.milliseconds(250)
        /// The time after a reconnect in which missing subscribers are waited for, ``settle`` included (MQTT 5 only).
        public var subscriberPatience = Duration.seconds(5)
        /// The pause between two looks for missing subscribers.
        public var subscriberPause = Duration.milliseconds(250)
        /// The pause before a busy broker gets a reading again.
        public var retryPause = Duration.seconds(1)
        /// A session whose broker owes the oldest acknowledgement for so long is ended: it may never come.
        public var acknowledgement = Duration.seconds(120)
        /// The shortest time between two writes of the cursor, unless it has passed ``saveCount`` readings.
        public var saveInterval = Duration.milliseconds(250)
        /// The cursor is written at once when it has passed so many readings.
        public var saveCount: Int64 = 250
        /// The search for topics that the broker refuses.
        public var topics = TopicRefusals.Options()
        /// The time for which the broker may answer "busy", or without a reason, to readings on one topic before they are skipped.
        public var busyPatience = Duration.seconds(60)
        /// The shortest wait for the answer to a ping, and for a broker that reads nothing.
        public var answerPatience = Duration.seconds(10)
        /// The pause after the log failed.
        public var logPause = Duration.seconds(1)
        /// How long a clean stop waits for the broker, and then for the log.
        public var farewell = Duration.seconds(2)
        public var pace = TokenBucket()

        public init() {}
    }
}
