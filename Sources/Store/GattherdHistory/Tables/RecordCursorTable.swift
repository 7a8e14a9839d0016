import GattherdModel

/// The positions in the stored records of devices.
final class RecordCursorTable {
    private let upsert: Statement
    private let select: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        upsert = try Statement(
            """
            INSERT INTO record_cursor (device, profile, stream, address, number, ts, state, span)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, (SELECT id FROM clock WHERE seq_end IS NULL))
            ON CONFLICT (device, profile, stream) DO UPDATE SET address = excluded.address, number = excluded.number,
                ts = excluded.ts, state = excluded.state, span = excluded.span, shift = 0
            """,
            on: connection
        )
        // A clock that was synchronised with a wrong time has a later span with the same rows.
        select = try Statement(
            """
            SELECT device, profile, stream, address, number, ts, state, record_cursor.shift + coalesce((
                SELECT sum(later.shift) FROM clock AS own JOIN clock AS later
                    ON later.boot = own.boot AND later.id >= own.id AND later.seq <= own.seq
                WHERE own.id = record_cursor.span
            ), 0)
            FROM record_cursor
            """,
            on: connection
        )
    }

    /// Writes cursors; only in the transaction of the readings that they cover.
    func set(_ cursors: some Sequence<RecordCursor>) throws(StoreFault) {
        for cursor in cursors {
            try upsert.run(
                binding: cursor.key.device,
                cursor.key.profile,
                cursor.key.stream,
                cursor.address,
                cursor.number,
                cursor.time?.microseconds,
                cursor.state
            )
        }
    }

    func cursors() throws(StoreFault) -> [RecordCursor] {
        try select.rows { row in
            var cursor = RecordCursor(
                key: RecordCursor.Key(device: row.text(0), profile: row.text(1), stream: row.text(2)),
                address: row.text(3),
                number: row.optionalInteger(4),
                time: row.optionalInteger(5).map { Timestamp(microseconds: $0) },
                state: row.text(6)
            )
            cursor.correction = row.integer(7)
            return cursor
        }
    }
}
