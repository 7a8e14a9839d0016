public import GattherdModel

extension HistoryReader {
    /// Returns the devices in the history, by name.
    public func devices() throws(StoreFault) -> [String] {
        try names("SELECT device FROM stream UNION SELECT device FROM device UNION SELECT device FROM reject")
    }

    /// Returns the metrics of one device, or of all, that have or had samples, by name.
    public func metrics(device: String?) throws(StoreFault) -> [String] {
        try names("SELECT metric FROM quantity WHERE ?1 IS NULL OR device = ?1", device)
    }

    /// Returns the enrolled devices, by name.
    public func enrolledDevices() throws(StoreFault) -> [EnrolledDevice] {
        try EnrolledTable(connection).devices()
    }

    private func names(_ sql: String, _ argument: String? = nil) throws(StoreFault) -> [String] {
        let statement = try Statement("SELECT * FROM (\(sql)) GROUP BY 1 ORDER BY 1", on: connection)
        if argument != nil { statement.bind(argument, at: 1) }
        var names: [String] = []
        while try statement.step() { names.append(statement.text(0)) }
        return names
    }
}
