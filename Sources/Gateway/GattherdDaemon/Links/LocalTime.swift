import GattherdBluetooth
import GattherdModel
import Glibc

extension WriteTime {
    /// The time of a moment in the gateway's time zone.
    init(_ moment: Timestamp) {
        let seconds = moment.microseconds / 1_000_000
        self.init(seconds: seconds, offset: Self.offset(at: seconds))
    }

    /// Returns the seconds from UTC to local time; 0 if the zone is unknown.
    private static func offset(at seconds: Int64) -> Int64 {
        var time = time_t(seconds)
        var parts = unsafe tm()
        guard unsafe localtime_r(&time, &parts) != nil else { return 0 }
        return unsafe Int64(parts.tm_gmtoff)
    }
}

extension WriteTemplate {
    /// Returns the bytes to write at a moment.
    ///
    /// - Throws: ``BluetoothError`` if a number does not fit into its bytes.
    func octets(at moment: Timestamp) throws(BluetoothError) -> [UInt8] {
        let time = WriteTime(moment)
        let octets = octets { variable in if case .time(let unit) = variable { time[unit] } else { nil } }
        guard let octets else { throw BluetoothError(.notSupported, "a number does not fit into '\(self)'") }
        return octets
    }
}
