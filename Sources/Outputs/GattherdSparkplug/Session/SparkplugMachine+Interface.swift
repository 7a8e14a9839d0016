import GattherdMQTT
import GattherdMachines
import GattherdModel

extension SparkplugMachine {
    /// An input of the machine; `session` distinguishes events of earlier sessions.
    enum Event: Sendable {
        case start
        /// Stops after publishing the remaining readings for at most `drain`.
        case stop(drain: Duration)
        /// The cursor, and the bdSeq of the last run's last connection; `nil` if it had none.
        case loaded(cursor: Int64, bdSeq: UInt8?)
        /// The newest committed number.
        case headMoved(Int64)
        /// The entries that follow a number.
        case fetched(JournalBatch, after: Int64)
        case saved(Int64)
        case journalFailed(Operation)
        /// CONNACK, with the maximum size of packets in bytes, and all SUBACKs have arrived.
        case connected(session: Int, maximumPacket: Int = .max)
        case failed(session: Int, BrokerFault)
        case message(session: Int, BrokerMessage)
        /// The broker has answered the ping.
        case confirmed(session: Int)
        /// The broker did not accept the current values of these metrics.
        case unpublished(device: String, aliases: Set<UInt64>)
        case described(DeviceDescription)
        case link(device: String, isOnline: Bool)
        case removed(device: String)
        case permitted(ControlPermissions)
        /// A control was written.
        case controlSet(ControlRequest, ControlValue)
        /// ``deadline`` has been reached.
        case tick
    }

    /// An operation of the journal.
    enum Operation: String, Hashable, Sendable {
        case load
        case fetch
        case save
    }

    enum Effect: Hashable, Sendable {
        case load
        case fetch(after: Int64, limit: Int)
        case save(Int64)
        /// Connects with this NDEATH as the will and subscribes; ``Event/connected(session:maximumPacket:)`` follows.
        case connect(session: Int, bdSeq: UInt8, will: SparkplugMessage)
        case publish(session: Int, [SparkplugMessage])
        /// Pings the broker; ``Event/confirmed(session:)`` follows.
        case ping(session: Int)
        case set(ControlRequest)
        /// Publishes NDEATH and disconnects; without NDEATH the broker publishes the will.
        case close(session: Int, SparkplugMessage?)
        case report(Report)
        /// The output has ended.
        case finish
    }

    /// An occurrence worth a log line or a counter.
    enum Report: Hashable, Sendable {
        case waitingForHost
        case born
        case hostIsOffline
        case disconnected(BrokerFault, retryAfter: Duration)
        case rebirthRequested
        /// All births were published because a host asked for them.
        case bornAgain
        /// History has lost these entries before they were published.
        case missing(JournalGap)
        /// A message of a host that is not understood or not allowed.
        case ignored(topic: String, String)
    }

    /// The durations and bounds; the defaults suit one gateway and one broker.
    struct Options: Sendable {
        /// The maximum number of readings that the broker has not confirmed.
        var window = 1000
        /// The maximum number of bytes that wait for a slow broker, besides the births of the node.
        var unsentLimit = 8 << 20
        /// The maximum number of readings that are fetched at once.
        var fetchLimit = 250
        /// The limit for dialling, CONNACK and SUBACK.
        var connectTimeout = Duration.seconds(15)
        /// The pause after a lost or failed connection.
        var backoff = Backoff(minimum: .milliseconds(500), maximum: .seconds(10))
        /// The pause after a refusal that needs a configuration change.
        var refusedBackoff = Backoff(minimum: .seconds(10), maximum: .seconds(60))
        /// The duration after which a session counts as good, which resets the backoff.
        var stableAfter = Duration.seconds(10)
        /// The time between the loss of a link and DDEATH, in which its last values are published.
        var deathDelay = Duration.seconds(1)
        /// The time after which the gateway knows of the crash of the primary host.
        ///
        /// The broker notices it after 1.5 times a keepalive of 60 s. If its message does not arrive, the gateway
        /// notices that after twice its own keepalive of 30 s. The rest is a margin.
        var hostGrace = Duration.seconds(160)
        /// The shortest time between two pings that confirm values.
        var pingPause = Duration.milliseconds(200)
        /// The births on request that are allowed at once, and the time after which another one is.
        var rebirths = 3
        var rebirthInterval = Duration.seconds(10)
        /// The shortest time between two writes of the cursor.
        var saveInterval = Duration.milliseconds(250)
        /// The pause after a journal failure.
        var journalPause = Duration.seconds(1)
        /// The longest wait of a clean stop for the broker, and then for the journal.
        var stopLimit = Duration.seconds(2)

        init() {}
    }

    /// The phase of the session, for people.
    enum State: Hashable, Sendable {
        case idle
        case connecting
        case waitingForHost
        case online
        case backingOff(BrokerFault?)
        case stopping
        case stopped
    }
}
