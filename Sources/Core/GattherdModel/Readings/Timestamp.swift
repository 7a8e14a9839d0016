/// An instant: microseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
public struct Timestamp: Hashable, Comparable, Sendable {
    public let microseconds: Int64

    public init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    public static func < (left: Self, right: Self) -> Bool { left.microseconds < right.microseconds }

    /// Returns the instant `duration` later, clamped to the representable range.
    public func advanced(by duration: Duration) -> Timestamp {
        let (seconds, attoseconds) = duration.components
        let end: Int64 = duration < .zero ? .min : .max
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let (offset, overflow2) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        let (sum, overflow3) = microseconds.addingReportingOverflow(offset)
        return Timestamp(microseconds: overflow || overflow2 || overflow3 ? end : sum)
    }

    /// Returns the instant, rounded down to a multiple of `step` microseconds since 1970.
    public func rounded(downTo step: Int64) -> Timestamp {
        let (_, remainder) = Self.floorDivide(microseconds, by: max(1, step))
        return Timestamp(microseconds: microseconds &- remainder)
    }
}

extension Timestamp {
    /// The instant in UTC as RFC 3339 with six decimals, for example `2026-11-21T03:20:05.123456Z`.
    ///
    /// RFC 3339 has only the years 0 to 9999; instants outside are clamped.
    public var rfc3339: String {
        String(decoding: rfc3339Bytes, as: UTF8.self)
    }

    /// ``rfc3339`` as ASCII.
    public var rfc3339Bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(27)
        writeRFC3339(to: &bytes)
        return bytes
    }

    /// Appends ``rfc3339`` to `bytes`.
    public func writeRFC3339(to bytes: inout [UInt8]) {
        let instant = min(max(self, Self.writable.lowerBound), Self.writable.upperBound)
        let (day, microsecond) = Self.floorDivide(instant.microseconds, by: 86_400_000_000)
        let date = CivilDate(daysSince1970: day)
        let second = microsecond / 1_000_000
        Self.write(date.year, width: 4, "-", to: &bytes)
        Self.write(date.month, width: 2, "-", to: &bytes)
        Self.write(date.day, width: 2, "T", to: &bytes)
        Self.write(second / 3600, width: 2, ":", to: &bytes)
        Self.write(second / 60 % 60, width: 2, ":", to: &bytes)
        Self.write(second % 60, width: 2, ".", to: &bytes)
        Self.write(microsecond % 1_000_000, width: 6, "Z", to: &bytes)
    }

    /// The instants that RFC 3339 can represent: the years 0 to 9999.
    public static let writable =
        Timestamp(microseconds: -62_167_219_200_000_000)...Timestamp(microseconds: 253_402_300_799_999_999)

    private static func write(_ number: Int64, width: Int, _ suffix: Unicode.Scalar, to bytes: inout [UInt8]) {
        var divisor: Int64 = 1
        for _ in 1..<width { divisor *= 10 }
        while divisor > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
            divisor /= 10
        }
        bytes.append(UInt8(ascii: suffix))
    }

    static func floorDivide(_ number: Int64, by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = number.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

/// A day of the proleptic Gregorian calendar.
struct CivilDate: Hashable {
    let year: Int64
    let month: Int64
    let day: Int64
}

extension CivilDate {
    /// Uses years that start on the first of March, so that the leap day is the last day.
    init(daysSince1970 days: Int64) {
        let (era, dayOfEra) = Timestamp.floorDivide(days + 719_468, by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }
}
