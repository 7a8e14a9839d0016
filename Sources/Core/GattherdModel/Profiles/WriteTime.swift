/// The gateway's time as numbers for devices that have a clock.
public struct WriteTime: Hashable, Sendable {
    public enum Unit: String, Hashable, Sendable, CaseIterable {
        /// Seconds since 1970, in UTC.
        case now
        /// Seconds from 1970 to the local date and time, as if that were UTC.
        case local
        case year
        /// 1 to 12.
        case month
        /// 1 to 31.
        case day
        case hour
        case minute
        case second
        /// 1 for Monday to 7 for Sunday.
        case weekday
    }

    /// The last second of the year 9999.
    private static let last: Int64 = 253_402_300_799
    private static let secondsOfDay: Int64 = 86_400

    private let seconds: Int64
    private let local: Int64

    /// - Parameters:
    ///   - seconds: Seconds since 1970; other times than those of the years 1970 to 9999 are limited to these.
    ///   - offset: The seconds from UTC to local time, at most a day.
    public init(seconds: Int64, offset: Int64) {
        self.seconds = min(max(0, seconds), Self.last)
        local = min(max(0, self.seconds + min(max(offset, -Self.secondsOfDay), Self.secondsOfDay)), Self.last)
    }

    public subscript(_ unit: Unit) -> Int64 {
        switch unit {
        case .now: seconds
        case .local: local
        case .year: date.year
        case .month: date.month
        case .day: date.day
        case .hour: local % Self.secondsOfDay / 3600
        case .minute: local % 3600 / 60
        case .second: local % 60
        case .weekday: (local / Self.secondsOfDay + 3) % 7 + 1
        }
    }

    /// The local date, counted in years that begin with March, so that a leap day is the last day of its year.
    private var date: (year: Int64, month: Int64, day: Int64) {
        let days = local / Self.secondsOfDay + 719_468
        let era = days / 146_097
        let dayOfEra = days % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * month + 2) / 5 + 1
        return (400 * era + yearOfEra + (month < 10 ? 0 : 1), month < 10 ? month + 3 : month - 9, day)
    }
}
