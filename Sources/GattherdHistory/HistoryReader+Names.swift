public import GattherdModel

extension HistoryReader {
    /// The devices that history has heard of, by name.
    public func devices() throws(StoreFault) -> [String] {
        try names("SELECT device FROM stream UNION SELECT device FROM device UNION SELECT device FROM reject")
    }

    /// The metrics of one device, or of all, that history has samples of or had, by name.
    public func metrics(device: String?) throws(StoreFault) -> [String] {
        try names("SELECT metric FROM quantity WHERE ?1 IS NULL OR device = ?1", device)
    }

    /// Each device with its address and when something of it was last heard, to the second, by name.
    public func sightings() throws(StoreFault) -> [DeviceSighting] {
        let statement = try Statement(
            "SELECT device, address, unixepoch(last_seen) FROM devices ORDER BY device",
            on: connection
        )
        var sightings: [DeviceSighting] = []
        while try statement.step() {
            let time = Timestamp(microseconds: statement.integer(2) &* 1_000_000)
            sightings.append(DeviceSighting(device: statement.text(0), address: statement.text(1), time: time))
        }
        return sightings
    }

    private func names(_ sql: String, _ argument: String? = nil) throws(StoreFault) -> [String] {
        let statement = try Statement("SELECT * FROM (\(sql)) GROUP BY 1 ORDER BY 1", on: connection)
        if argument != nil { statement.bind(argument, at: 1) }
        var names: [String] = []
        while try statement.step() { names.append(statement.text(0)) }
        return names
    }
}

/// When history last heard of a device.
public struct DeviceSighting: Hashable, Sendable {
    public var device: String
    public var address: String
    public var time: Timestamp

    public init(device: String, address: String, time: Timestamp) {
        self.device = device
        self.address = address
        self.time = time
    }
}
