/// The peripherals that the platform knows, with the times of their last advertisements.
struct KnownPeripherals: Sendable {
    private var statuses: [PeripheralID: PeripheralStatus] = [:]
    private var seen: [PeripheralID: ContinuousClock.Instant] = [:]
    /// The number of the newest link.
    private(set) var newestLink: UInt64 = 0

    var all: some Collection<PeripheralStatus> { statuses.values }

    subscript(_ id: PeripheralID) -> PeripheralStatus? { statuses[id] }

    /// The time of the peripheral's last advertisement.
    func lastSeen(_ id: PeripheralID) -> ContinuousClock.Instant? { seen[id] }

    /// The last advertisements that an adapter has received.
    func sightings(by adapter: BluetoothAddress?) -> [Sighting] {
        seen.compactMap { id, time in
            guard id.adapter == adapter, let status = statuses[id] else { return nil }
            return Sighting(status: status, time: time)
        }
    }

    /// Records a peripheral's status.
    ///
    /// - Returns: The status before, and true if the new one is an advertisement.
    mutating func update(_ sighting: Sighting) -> (before: PeripheralStatus?, isSighting: Bool) {
        let status = sighting.status
        let before = statuses.updateValue(status, forKey: status.id)
        newestLink = max(newestLink, status.link)
        let isSighting = status.isSighting(after: before)
        if isSighting { seen[status.id] = sighting.time }
        return (before, isSighting)
    }

    /// Records a bond before the platform reports it.
    mutating func markPaired(_ id: PeripheralID) {
        statuses[id]?.isPaired = true
    }

    mutating func remove(_ id: PeripheralID) -> PeripheralStatus? {
        seen[id] = nil
        return statuses.removeValue(forKey: id)
    }

    mutating func removeAll() {
        (statuses, seen) = ([:], [:])
    }
}

extension PeripheralStatus {
    /// True if a scan received the peripheral between the two statuses.
    fileprivate func isSighting(after before: PeripheralStatus?) -> Bool {
        guard let before, rssi != nil else { return rssi != nil }
        return heard != before.heard || before.rssi == nil
    }

    /// The number of advertisements between the two statuses, before the last one; each status replaces outdated ones.
    ///
    /// The number of advertisements starts again with each object of the platform.
    func missedAdvertisements(since before: PeripheralStatus?) -> UInt64 {
        let former = before?.heard ?? 0
        return heard > former ? heard - former - 1 : 0
    }

    /// True if the name, the bond or the signal strength has changed.
    func hasNewNameBondOrStrength(since before: PeripheralStatus?) -> Bool {
        name != before?.name || isPaired != (before?.isPaired ?? false) || rssi != before?.rssi
    }

    /// True if the name or the services of a peripheral that a scan receives have changed.
    ///
    /// BlueZ reports those of a scan response alone if nothing else has changed.
    func hasNewNameOrServices(since before: PeripheralStatus?) -> Bool {
        guard let before, rssi != nil else { return false }
        return name != before.name || services != before.services
    }
}

/// The consumers of the adapter's scan.
struct ScannerTable: Sendable {
    private var scanners: [UInt64: Scanner] = [:]

    /// The scanners in the order of their start.
    var sorted: [Scanner] { scanners.sorted { $0.key < $1.key }.map(\.value) }

    /// The filter that serves all scanners; `nil` without any.
    ///
    /// Services are no part of it: BlueZ compares them with lists of UUIDs only, and would hide peripherals that have
    /// nothing but service data.
    var discoveryFilter: DiscoveryFilter? {
        guard !scanners.isEmpty else { return nil }
        return DiscoveryFilter(reportsDuplicates: scanners.values.contains(where: \.allowsDuplicates))
    }

    /// Adds a scanner, which receives the admitted ones of `sightings` at once.
    mutating func add(_ scanner: Scanner, id: UInt64, sightings: [Sighting]) {
        var scanner = scanner
        for sighting in sightings where scanner.admits(sighting) { scanner.mailbox.push(sighting) }
        scanners[id] = scanner
    }

    /// Removes a scanner, which should be released without a lock.
    mutating func remove(_ id: UInt64) -> Scanner? {
        scanners.removeValue(forKey: id)
    }

    /// Returns the mailboxes of the scanners that admit a sighting, which may be no new advertisement.
    ///
    /// `missed` advertisements before it count as dropped by scanners of each advertisement.
    mutating func admit(_ sighting: Sighting, isNew: Bool, missed: UInt64 = 0) -> [Mailbox<Sighting>] {
        scanners.keys.compactMap { id in
            guard scanners[id]?.admits(sighting, isNew: isNew) == true, let scanner = scanners[id] else { return nil }
            if scanner.allowsDuplicates { scanner.mailbox.countDropped(missed) }
            return scanner.mailbox
        }
    }

    /// Makes the peripheral's next advertisement new to all scanners.
    mutating func forget(_ id: PeripheralID) {
        for scanner in scanners.keys { scanners[scanner]?.forget(id) }
    }

    /// Makes the next advertisement of each peripheral new to all scanners.
    mutating func forgetAll() {
        for scanner in scanners.keys { scanners[scanner]?.forgetAll() }
    }

    /// Removes and returns all scanners.
    mutating func removeAll() -> [Scanner] {
        defer { scanners = [:] }
        return Array(scanners.values)
    }
}

/// A scan of the adapter that serves all consumers.
struct DiscoveryRequest: Hashable, Sendable {
    let adapter: BluetoothAddress
    let filter: DiscoveryFilter
    let session: UInt64
}
