extension PayloadCursor {
    /// Reads a two's complement octet.
    public mutating func i8() throws(PayloadError) -> Int8 {
        Int8(bitPattern: try u8())
    }

    /// Reads a signed integer of two octets.
    public mutating func i16() throws(PayloadError) -> Int16 {
        Int16(bitPattern: try u16())
    }

    /// Reads a signed integer of four octets.
    public mutating func i32() throws(PayloadError) -> Int32 {
        Int32(bitPattern: try u32())
    }

    /// Reads an unsigned integer of three octets.
    public mutating func u24() throws(PayloadError) -> UInt32 {
        UInt32(truncatingIfNeeded: try unsigned(octets: 3))
    }

    /// Reads a signed integer of three octets.
    public mutating func i24() throws(PayloadError) -> Int32 {
        Int32(truncatingIfNeeded: try signed(octets: 3))
    }

    /// Reads an unsigned integer of eight octets.
    public mutating func u64() throws(PayloadError) -> UInt64 {
        try unsigned(octets: 8)
    }

    /// Reads a medfloat16.
    public mutating func sfloat() throws(PayloadError) -> IEEE11073Number {
        IEEE11073Number(sfloat: try u16())
    }

    /// Reads a medfloat32.
    public mutating func float() throws(PayloadError) -> IEEE11073Number {
        IEEE11073Number(float: try u32())
    }

    /// Reads an IEEE 754 number of four octets.
    public mutating func f32() throws(PayloadError) -> Float {
        Float(bitPattern: try u32())
    }

    /// Reads an IEEE 754 number of eight octets.
    public mutating func f64() throws(PayloadError) -> Double {
        Double(bitPattern: try u64())
    }

    /// Reads `count` octets as UTF-8.
    ///
    /// Drops trailing NULs and spaces; replaces other NULs and invalid sequences.
    public mutating func text(octets count: Int) throws(PayloadError) -> String {
        var octets = try self.octets(count)
        while let last = octets.last, last == 0 || last == UInt8(ascii: " ") { octets.removeLast() }
        return String(decoding: octets, as: UTF8.self).withoutNULs
    }
}

extension PayloadCursor {
    /// Reads UTF-8 up to a NUL, which is consumed, or up to the end of the payload.
    ///
    /// With `count`, as many octets are consumed, and the text ends at the first NUL in them. Drops trailing spaces;
    /// replaces invalid sequences.
    public mutating func terminatedText(octets count: Int?) throws(PayloadError) -> String {
        var octets: [UInt8] = []
        if let count {
            octets = Array(try self.octets(count).prefix { $0 != 0 })
        } else {
            while left > 0, case let octet = try u8(), octet != 0 { octets.append(octet) }
        }
        while octets.last == UInt8(ascii: " ") { octets.removeLast() }
        return String(decoding: octets, as: UTF8.self)
    }
}

extension String {
    /// The text with each NUL replaced by U+FFFD, as C libraries end texts at a NUL.
    public var withoutNULs: String {
        guard utf8.contains(0) else { return self }
        return String(String.UnicodeScalarView(unicodeScalars.map { $0 == "\0" ? "\u{FFFD}" : $0 }))
    }
}

extension PayloadCursor {
    /// Reads `count` octets as little-endian UTF-16.
    ///
    /// Drops trailing NULs and spaces; replaces other NULs and invalid sequences; ignores an odd octet at the end.
    public mutating func wideText(octets count: Int) throws(PayloadError) -> String {
        let octets = try self.octets(count)
        var units: [UInt16] = []
        for index in 0..<octets.count / 2 {
            units.append(UInt16(octets[2 * index]) | UInt16(octets[2 * index + 1]) << 8)
        }
        while let last = units.last, last == 0 || last == UInt16(UInt8(ascii: " ")) { units.removeLast() }
        return String(decoding: units, as: UTF16.self).withoutNULs
    }
}

extension PayloadCursor {
    /// Checks that every octet has been read, for formats that newer versions do not extend.
    public func end() throws(PayloadError) {
        guard left == 0 else {
            let bytes = left == 1 ? "1 byte" : "\(left) bytes"
            throw .invalid(reason: "too long: \(bytes) after the last field, at offset \(offset)")
        }
    }
}

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
