import GattherdModel

/// The entries that the open transaction has added to the journal, and the extent of the last readings.
struct AddedEntries {
    private(set) var entries: [JournalEntry] = []
    /// The extent of the last readings, which the next one may continue.
    private var extent: Extent?

    /// Appends a reading; returns the extent before it, if the reading begins another one.
    mutating func append(_ reading: JournalReading, at now: Int64) -> Extent? {
        entries.append(.reading(reading))
        let next = Extent(reading, at: now)
        if extent?.add(next) == true { return nil }
        defer { extent = next }
        return extent
    }

    /// Appends an event, a reject or a correction.
    mutating func append(_ entry: JournalEntry) {
        entries.append(entry)
    }

    /// Removes the extent of the last readings and returns it.
    mutating func removeExtent() -> Extent? {
        defer { extent = nil }
        return extent
    }

    mutating func removeAll() {
        entries.removeAll(keepingCapacity: true)
        extent = nil
    }
}
