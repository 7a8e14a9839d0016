import GattherdModel

/// The devices in the history, and those that a person disconnected.
final class DeviceTable {
    /// The maximum size of a peripheral's name in bytes, by the Bluetooth specification.
    private static let longestName = 248

    private let removals: [String]
    private let connection: SQLiteConnection
    private let insertOrUpdate: Statement
    private let hold: Statement
    private let release: Statement
    private let selectHeld: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        self.connection = connection
        removals = ["device", "event", "reject", "record_cursor"].map { table in
            "DELETE FROM \(table) WHERE device = ?1 AND NOT EXISTS (SELECT 1 FROM stream WHERE device = ?1)"
        }
        insertOrUpdate = try Statement(
            """
            INSERT INTO device (device, address, name, profiles, first_seen, last_seen) VALUES (?1, ?2, ?3, ?4, ?5, ?5)
            ON CONFLICT (device) DO UPDATE SET address = excluded.address, name = coalesce(excluded.name, name),
                profiles = CASE excluded.profiles WHEN '' THEN profiles ELSE excluded.profiles END,
                last_seen = excluded.last_seen
            """,
            on: connection
        )
        hold = try Statement("INSERT INTO held (device) VALUES (?1) ON CONFLICT DO NOTHING", on: connection)
        release = try Statement("DELETE FROM held WHERE device = ?1", on: connection)
        selectHeld = try Statement("SELECT device FROM held", on: connection)
    }

    /// Adds or updates a device; an unknown name or unknown profiles leave the stored ones unchanged.
    func upsert(_ device: DeviceRecord, seenAt time: Timestamp) throws(StoreFault) {
        try insertOrUpdate.run(
            binding: device.device,
            device.address,
            device.name?.cut(toBytes: Self.longestName),
            device.profiles.joined(separator: ","),
            time.microseconds
        )
    }

    /// Removes all rows of a device that never had a reading.
    func removeTraces(of device: String) throws(StoreFault) {
        for sql in removals {
            let removal = try Statement(sql, on: connection)
            try removal.run(binding: device)
        }
    }

    func setHeld(_ device: String, _ isHeld: Bool) throws(StoreFault) {
        if isHeld {
            try hold.run(binding: device)
        } else {
            try release.run(binding: device)
        }
    }

    func held() throws(StoreFault) -> Set<String> {
        Set(try selectHeld.rows { row in row.text(0) })
    }
}
