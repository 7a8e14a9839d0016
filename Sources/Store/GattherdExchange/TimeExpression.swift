public import GattherdModel
import GattherdYAML

/// Points in time as people write them: `1h`, `30m ago`, `today`, `2026-11-21 03:20`, RFC 3339.
public enum TimeExpression {
    /// The accepted forms, for help texts.
    public static let help = "1h or 1h30m (ago), now, today, yesterday, 2026-11-21 [03:20] (UTC), or RFC 3339"

    /// Reads a point in time; a length of time counts back from `now`, days begin at midnight UTC.
    public static func instant(_ text: String, now: Timestamp) -> Timestamp? {
        let day: Int64 = 86_400_000_000
        let midnight = now.rounded(downTo: day)
        switch text {
        case "now": return now
        case "today": return midnight
        case "yesterday": return Timestamp(microseconds: midnight.microseconds - day)
        default: return ago(text, now) ?? date(text)
        }
    }

    /// Reads a length of time above zero: `500ms`, `30s`, `5m`, `1h30m`, `2d`, `1w`.
    public static func duration(_ text: String) -> Duration? {
        var sum = Duration.zero
        var rest = text[...]
        while !rest.isEmpty {
            let number = rest.prefix { !$0.isLetter }
            let part = rest.prefix(number.count + rest[number.endIndex...].prefix { $0.isLetter }.count)
            guard let duration = QuantityGrammar.duration(String(part)) else { return nil }
            sum += duration
            rest = rest[part.endIndex...]
        }
        return sum > .zero ? sum : nil
    }

    private static func ago(_ text: String, _ now: Timestamp) -> Timestamp? {
        let length = text.hasSuffix(" ago") ? String(text.dropLast(4)) : text
        return duration(length).map { now.advanced(by: .zero - $0) }
    }

    /// RFC 3339, where the end may be left out: the offset, the seconds, the time of day.
    private static func date(_ text: String) -> Timestamp? {
        for end in ["", "Z", ":00Z", "T00:00:00Z"] {
            if let instant = Timestamp(rfc3339: (text + end).utf8) { return instant }
        }
        return nil
    }
}
