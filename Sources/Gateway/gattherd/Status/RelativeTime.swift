import GattherdModel

/// Times relative to now.
enum RelativeTime {
    /// Returns the two largest units: `4s`, `3m12s`, `2h05m`, `9d4h`.
    static func length(_ duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400)
        if minutes == 0 { return "\(seconds)s" }
        if hours == 0 { return "\(minutes)m\(padded(seconds % 60))s" }
        if days == 0 { return "\(hours)h\(padded(minutes % 60))m" }
        return "\(days)d\(hours % 24)h"
    }

    /// Returns the time since a time in RFC 3339; `nil` for another text.
    static func since(_ text: String, _ now: Timestamp) -> String? {
        Timestamp(rfc3339: text.utf8).map { length(now - $0) }
    }

    static func ago(_ text: String, _ now: Timestamp) -> String? {
        since(text, now).map { $0 + " ago" }
    }

    /// Returns the time until a time in RFC 3339; `now` if it has passed.
    static func ahead(_ text: String, _ now: Timestamp) -> String? {
        guard let time = Timestamp(rfc3339: text.utf8) else { return nil }
        return time > now ? "in " + length(time - now) : "now"
    }

    private static func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

extension Timestamp {
    /// The duration from `right` to `left`.
    static func - (left: Timestamp, right: Timestamp) -> Duration {
        .microseconds(left.microseconds.subtractingReportingOverflow(right.microseconds).partialValue)
    }
}

extension DaemonStatus.Output {
    /// The age of the oldest waiting entry; `nil` for less than a second.
    var lagWords: String? {
        guard let lag, lag >= 1 else { return nil }
        return RelativeTime.length(.seconds(Int64(min(lag, 1e15))))
    }
}
