import GattherdModel

/// A device that an enrolment rule has created.
public struct EnrolledDevice: Hashable, Sendable {
    public var device: String
    public var address: String
    /// The key of the device's rule.
    public var rule: String
    /// The listening time since the last sighting; stored in whole seconds.
    public var silence: Duration
    /// False until it has been ready for the first time.
    public var isProven: Bool

    public init(device: String, address: String, rule: String, silence: Duration = .zero, isProven: Bool = true) {
        self.device = device
        self.address = address
        self.rule = rule
        self.silence = silence
        self.isProven = isProven
    }
}

/// The enrolled devices, which must be known after a restart even if they are away.
final class EnrolledTable {
    private let insert: Statement
    private let clear: Statement
    private let select: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        insert = try Statement(
            "INSERT INTO enrolled (device, address, rule, silence, proven) VALUES (?1, ?2, ?3, ?4, ?5)",
            on: connection
        )
        clear = try Statement("DELETE FROM enrolled", on: connection)
        select = try Statement(
            "SELECT device, address, rule, silence, proven FROM enrolled ORDER BY device",
            on: connection
        )
    }

    func devices() throws(StoreFault) -> [EnrolledDevice] {
        try select.rows { row in
            EnrolledDevice(
                device: row.text(0),
                address: row.text(1),
                rule: row.text(2),
                silence: .seconds(row.integer(3)),
                isProven: row.integer(4) != 0
            )
        }
    }

    func replace(with devices: [EnrolledDevice]) throws(StoreFault) {
        try clear.run()
        for device in devices {
            try insert.run(
                binding: device.device,
                device.address,
                device.rule,
                device.silence.components.seconds,
                device.isProven
            )
        }
    }
}
