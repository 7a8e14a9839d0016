extension Timestamp {
    /// Parses RFC 3339, with any offset and any number of decimals: `2026-11-21T03:20:05.123456Z`.
    ///
    /// Digits after the microseconds are ignored.
    public init?(rfc3339 text: some Collection<UInt8>) {
        var reader = FieldReader(rest: text[...])
        guard let day = reader.day(), reader.skip("T", "t", " "), let time = reader.timeOfDay(),
            let offset = reader.offset(), reader.isAtEnd
        else { return nil }
        self.init(microseconds: day * 86_400_000_000 + time - offset)
    }

    /// The inverse of ``CivilDate``, with years that start on the first of March.
    fileprivate static func daysSince1970(_ date: CivilDate) -> Int64 {
        let (year, month) = (date.year, date.month)
        let (era, yearOfEra) = floorDivide(month <= 2 ? year - 1 : year, by: 400)
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}

/// Parses the fields of RFC 3339, section 5.6.
private struct FieldReader<Text: Collection<UInt8>> where Text.SubSequence == Text {
    var rest: Text

    var isAtEnd: Bool { rest.isEmpty }

    /// Parses `full-date`, in days since 1970; `nil` for an invalid day.
    mutating func day() -> Int64? {
        guard let year = number(4), skip("-"), let month = number(2), skip("-"), let day = number(2),
            (1...12).contains(month)
        else { return nil }
        let date = CivilDate(year: year, month: month, day: day)
        let days = Timestamp.daysSince1970(date)
        return CivilDate(daysSince1970: days) == date ? days : nil
    }

    /// Parses `partial-time`, in microseconds; a leap second becomes the first second of the next minute.
    mutating func timeOfDay() -> Int64? {
        guard let hour = number(2), hour < 24, skip(":"), let minute = number(2), minute < 60, skip(":"),
            let second = number(2), second < 61, let fraction = fraction()
        else { return nil }
        return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    }

    /// Parses `time-offset`, in microseconds.
    mutating func offset() -> Int64? {
        if skip("Z", "z") { return 0 }
        let sign: Int64 = rest.first == UInt8(ascii: "-") ? -1 : 1
        guard skip("+", "-"), let hour = number(2), hour < 24, skip(":"), let minute = number(2), minute < 60 else {
            return nil
        }
        return sign * (hour * 60 + minute) * 60_000_000
    }

    mutating func skip(_ choices: Unicode.Scalar...) -> Bool {
        guard let byte = rest.first, choices.contains(Unicode.Scalar(byte)) else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func fraction() -> Int64? {
        guard skip(".") else { return 0 }
        var (fraction, weight): (Int64, Int64) = (0, 100_000)
        guard let first = digit() else { return nil }
        var next: Int64? = first
        while let digit = next {
            fraction += digit * weight
            weight /= 10
            next = self.digit()
        }
        return fraction
    }

    private mutating func number(_ count: Int) -> Int64? {
        var number: Int64 = 0
        for _ in 0..<count {
            guard let digit = digit() else { return nil }
            number = number * 10 + digit
        }
        return number
    }

    private mutating func digit() -> Int64? {
        guard let byte = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
        rest.removeFirst()
        return Int64(byte - UInt8(ascii: "0"))
    }
}
