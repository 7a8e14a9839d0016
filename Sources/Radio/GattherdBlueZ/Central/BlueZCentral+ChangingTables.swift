import GattherdBluetooth
import GattherdSync

/// The GATT table of a link that bluetoothd reads anew.
///
/// bluetoothd adds what is new, then removes what is gone, without a word at the beginning or at the end; when it is
/// busy the removal is told first. When a subscription ends in between, 5.66 writes "off" to a handle, forgets the
/// characteristic, and crashes when the write is answered. So a table that changes is left alone until it is quiet.
struct ChangingTable {
    let settles: LoopTimer
    /// Channels without subscribers, whose sessions end when the table has settled; by path.
    var lingering: [String: NotificationChannel]
}

extension BlueZCentral {
    /// An attribute of a peripheral came or went.
    func tableChanged(_ id: PeripheralID, hasGrown: Bool) {
        guard handedTables.contains(id) || changingTables[id] != nil else { return wakeWaiters(of: id) }
        let previous = changingTables[id]
        if let previous { loop.cancel(previous.settles) }
        let quiet = hasGrown ? limits.growing : limits.shrinking
        let timer = loop.schedule(after: quiet) { [weak self] in self?.assumeIsolated { $0.tableSettled(id) } }
        changingTables[id] = ChangingTable(settles: timer, lingering: previous?.lingering ?? [:])
    }

    private func tableSettled(_ id: PeripheralID) {
        for channel in endChange(of: id) {
            channel.close()
            if channel.takesSignals { endSession(channel.path) }
        }
        if handedTables.remove(id) != nil { tell(.servicesChanged(id)) }
        wakeWaiters(of: id)
    }

    /// Waits no longer; the channels that lingered are the caller's to close.
    func endChange(of id: PeripheralID) -> [NotificationChannel] {
        guard let table = changingTables.removeValue(forKey: id) else { return [] }
        loop.cancel(table.settles)
        return Array(table.lingering.values)
    }

    /// Keeps a channel that nobody needs, when its session must not end yet; false when it may end now.
    func linger(_ channel: NotificationChannel) -> Bool {
        changingTables[channel.peripheral]?.lingering[channel.path] = channel
        return changingTables[channel.peripheral] != nil
    }

    /// The channel that was to end.
    func takeLingering(_ path: String, of id: PeripheralID) -> NotificationChannel? {
        changingTables[id]?.lingering.removeValue(forKey: path)
    }

    /// The characteristic is gone, and with it its session.
    func closeLingering(_ path: String) {
        for id in changingTables.keys { takeLingering(path, of: id)?.close() }
    }
}
