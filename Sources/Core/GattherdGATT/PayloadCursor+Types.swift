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
            let octets = left == 1 ? "1 octet" : "\(left) octets"
            throw .invalid(reason: "too long: \(octets) after the last field, at offset \(offset)")
        }
    }
}
