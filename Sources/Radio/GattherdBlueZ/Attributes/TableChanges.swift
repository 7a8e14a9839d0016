import GattherdBluetooth
import GattherdSync

/// The GATT tables that bluetoothd discovers again while their links last.
///
/// bluetoothd adds new attributes, then removes old ones, without a signal at the beginning or at the end. A busy
/// bluetoothd signals the removals first. When a subscription ends in between, 5.66 writes to the CCCD of an old
/// handle, forgets the characteristic, and crashes when the write is answered. So sessions without a subscriber are
/// held until the table has been unchanged for long enough.
final class TableChanges {
    enum Deadline: Sendable {
        /// The table has been unchanged for long enough to be read again.
        case quiet
        /// The table has been unchanged for so long that held sessions may end.
        case hold
    }

    private struct Change {
        let quiet: LoopTimer
        let hold: LoopTimer
        var isQuiet = false
        /// The channels without subscribers, by path.
        var held: [String: NotificationChannel]
    }

    private let loop: EventLoop
    private let limits: BlueZCentral.Limits
    /// The peripherals whose tables were read on their current links.
    private var tracked: Set<PeripheralID> = []
    private var changes: [PeripheralID: Change] = [:]

    init(on loop: EventLoop, limits: BlueZCentral.Limits) {
        self.loop = loop
        self.limits = limits
    }

    /// The number of peripherals with stored state.
    var count: Int { tracked.union(changes.keys).count }

    /// True until a changed table has been unchanged for long enough.
    func isChanging(_ id: PeripheralID) -> Bool {
        changes[id].map { !$0.isQuiet } ?? false
    }

    /// Records changes of a peripheral's table from now on, until its link ends.
    func track(_ id: PeripheralID) {
        tracked.insert(id)
    }

    /// Records that attributes were added or removed; returns false if the table is not tracked.
    ///
    /// `passed` is called on the Bluetooth thread when a deadline passes without a further change.
    func record(_ id: PeripheralID, hasGrown: Bool, passed: @escaping (Deadline) -> Void) -> Bool {
        guard tracked.contains(id) else { return false }
        let previous = removeChange(of: id)
        let quiet = hasGrown ? limits.quietAfterGrowth : limits.quietAfterShrinkage
        changes[id] = Change(
            quiet: loop.schedule(after: quiet) { [weak self] in
                self?.changes[id]?.isQuiet = true
                passed(.quiet)
            },
            hold: loop.schedule(after: max(quiet, limits.sessionHold)) { passed(.hold) },
            held: previous?.held ?? [:]
        )
        return true
    }

    private func removeChange(of id: PeripheralID) -> Change? {
        guard let change = changes.removeValue(forKey: id) else { return nil }
        loop.cancel(change.quiet)
        loop.cancel(change.hold)
        return change
    }

    // MARK: - Held channels

    /// Holds a channel without subscribers; returns false if its session may end now.
    func hold(_ channel: NotificationChannel) -> Bool {
        changes[channel.peripheral]?.held[channel.path] = channel
        return changes[channel.peripheral] != nil
    }

    /// Removes a held channel, for a new subscriber or because its characteristic was removed.
    func removeHeld(_ path: String, of id: PeripheralID) -> NotificationChannel? {
        changes[id]?.held.removeValue(forKey: path)
    }

    /// Removes the held channel of a characteristic that was removed.
    func removeHeld(_ path: String) -> NotificationChannel? {
        for id in changes.keys {
            if let channel = removeHeld(path, of: id) { return channel }
        }
        return nil
    }

    /// Ends a change; returns the channels to close.
    func endChange(of id: PeripheralID) -> [NotificationChannel] {
        removeChange(of: id).map { Array($0.held.values) } ?? []
    }

    /// Stops recording changes of a peripheral whose link ended; returns the channels to close.
    func untrack(_ id: PeripheralID) -> [NotificationChannel] {
        tracked.remove(id)
        return endChange(of: id)
    }

    /// Stops recording changes of all peripherals; returns the channels to close.
    func removeAll() -> [NotificationChannel] {
        tracked = []
        return Array(changes.keys).flatMap { endChange(of: $0) }
    }
}
