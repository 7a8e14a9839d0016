extension PayloadCursor {
    /// Reads a Date Time of seven octets, or its date of four; `nil` if it is unknown or
    /// not a valid date.
    ///
    /// GATT Specification Supplement, "Date Time": the device's own time, without a zone.
    ///
    /// - Returns: For example `2026-03-14T15:09:26` or `2026-03-14`.
    public mutating func calendarText(hasTime: Bool) throws(PayloadError) -> String? {
        let (year, month, day) = (Int(try u16()), Int(try u8()), Int(try u8()))
        let date = Self.isDate(year, month, day) ? "\(year)-\(Self.twoDigits(month))-\(Self.twoDigits(day))" : nil
        guard hasTime else { return date }
        let (hour, minute, second) = (Int(try u8()), Int(try u8()), Int(try u8()))
        guard let date, hour < 24, minute < 60, second < 60 else { return nil }
        return date + "T" + [hour, minute, second].map(Self.twoDigits).joined(separator: ":")
    }

    /// True for a day of the Gregorian calendar, which starts in 1582; 0 means unknown.
    private static func isDate(_ year: Int, _ month: Int, _ day: Int) -> Bool {
        guard (1582...9999).contains(year), (1...12).contains(month), day > 0 else { return false }
        let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let days = [31, isLeapYear ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return day <= days[month - 1]
    }

    private static func twoDigits(_ number: Int) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}

extension PayloadCursor {
    /// Reads a UUID of 2, 4 or 16 octets, little-endian by default.
    public mutating func uuid(octets count: Int, isBigEndian: Bool = false) throws(PayloadError) -> BluetoothUUID {
        guard count == 16 else {
            let number = isBigEndian ? try unsignedBigEndian(octets: count) : try unsigned(octets: count)
            return BluetoothUUID(assigned: UInt32(truncatingIfNeeded: number))
        }
        let first = isBigEndian ? try unsignedBigEndian(octets: 8) : try u64()
        let second = isBigEndian ? try unsignedBigEndian(octets: 8) : try u64()
        return isBigEndian ? BluetoothUUID(high: first, low: second) : BluetoothUUID(high: second, low: first)
    }
}
