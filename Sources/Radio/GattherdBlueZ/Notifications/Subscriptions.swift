import GattherdBluetooth
import GattherdDBus

/// The notification channels of all links, with their subscribers and the calls that concern them.
struct Subscriptions {
    private var channels = DBusPathTable<NotificationChannel>()
    private var paths: [SubscriptionToken: String] = [:]
    /// The number of unanswered `StopNotify` calls, by path.
    private var endings: [String: Int] = [:]
    /// The number of our unanswered reads, by path.
    private var openReads: [String: Int] = [:]

    /// The number of entries of all tables.
    var count: Int { paths.count + endings.count + openReads.count }

    // MARK: - Channels

    subscript(path: String) -> NotificationChannel? { channels[path] }

    /// All channels with subscribers.
    var all: [NotificationChannel] { Set(paths.values).compactMap { channels[$0] } }

    /// The channel of the characteristic that `signal` is from.
    func channel(for signal: borrowing DBusSignal) -> NotificationChannel? { channels.value(for: signal) }

    func isCurrent(_ channel: NotificationChannel) -> Bool { channels[channel.path] === channel }

    /// Makes `channel` the current one of its characteristic.
    mutating func insert(_ channel: NotificationChannel) {
        channel.openReads = openReads[channel.path] ?? 0
        channels[channel.path] = channel
    }

    mutating func remove(_ channel: NotificationChannel) {
        if isCurrent(channel) { channels[channel.path] = nil }
    }

    /// Removes the channels of one peripheral, or of all, with their subscribers.
    mutating func removeAll(of id: PeripheralID? = nil) -> [NotificationChannel] {
        let removed = all.filter { id == nil || $0.peripheral == id }
        for channel in removed { channels[channel.path] = nil }
        let removedPaths = Set(removed.map(\.path))
        paths = id == nil ? [:] : paths.filter { !removedPaths.contains($0.value) }
        return removed
    }

    // MARK: - Subscribers

    mutating func add(_ subscriber: NotificationChannel.Subscriber, to channel: NotificationChannel) {
        channel.add(subscriber)
        paths[subscriber.token] = channel.path
    }

    /// Removes the path of a subscriber; returns the channel, which keeps the subscriber.
    mutating func removePath(of token: SubscriptionToken) -> NotificationChannel? {
        paths.removeValue(forKey: token).flatMap { channels[$0] }
    }

    /// Removes a subscriber from a channel.
    mutating func remove(_ token: SubscriptionToken, from channel: NotificationChannel) {
        channel.remove(token)
        if paths[token] == channel.path { paths[token] = nil }
    }

    /// Removes the subscribers of a channel that ended by itself.
    mutating func removeSubscribers(of channel: NotificationChannel) -> [SubscriptionToken] {
        channel.subscribers.map(\.token).filter { paths.removeValue(forKey: $0) != nil }
    }

    // MARK: - Calls

    /// True while `StopNotify` of this path is unanswered.
    func isEnding(_ path: String) -> Bool { endings[path] != nil }

    mutating func beginEnding(_ path: String) {
        endings[path, default: 0] += 1
    }

    mutating func endEnding(_ path: String) {
        endings[path] = endings[path].flatMap { $0 > 1 ? $0 - 1 : nil }
    }

    /// Counts our reads of a characteristic: the echo of each comes before its answer, like a notification.
    mutating func beginRead(_ path: String) {
        countRead(path, 1)
    }

    /// Ends our own read; `octets` is `nil` if it failed.
    mutating func endRead(_ path: String, _ octets: [UInt8]?) {
        channels[path]?.readEnded(octets)
        countRead(path, -1)
    }

    private mutating func countRead(_ path: String, _ change: Int) {
        let count = openReads[path, default: 0] + change
        openReads[path] = count == 0 ? nil : count
        channels[path]?.openReads = count
    }
}
