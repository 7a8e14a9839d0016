import FoundationEssentials
import GattherdConfig
import GattherdModel

/// Points in time as people write them: `1h`, `2d`, `today`, `yesterday`, RFC 3339.
enum TimeExpression {
    static let help = "1h, 2d (ago), today, yesterday (UTC), or RFC 3339"

    /// Reads `text`; a length of time counts back from `now`.
    static func instant(_ text: String, now: Timestamp) -> Timestamp? {
        let day: Int64 = 86_400_000_000
        let midnight = now.microseconds - now.microseconds % day
        switch text {
        case "now": return now
        case "today": return Timestamp(microseconds: midnight)
        case "yesterday": return Timestamp(microseconds: midnight - day)
        default: return duration(text).map { now.advanced(by: .zero - $0) } ?? rfc3339(text)
        }
    }

    /// Reads `500ms`, `30s`, `5m`, `1h`, `2d`, `1w`.
    static func duration(_ text: String) -> Duration? {
        Quantity.duration(text).flatMap { $0 > .zero ? $0 : nil }
    }

    private static func rfc3339(_ text: String) -> Timestamp? {
        let styles: [Date.ISO8601FormatStyle] = [.init(includingFractionalSeconds: true), .init()]
        for style in styles {
            if let date = try? style.parse(text) {
                return Timestamp(microseconds: Int64((date.timeIntervalSince1970 * 1_000_000).rounded()))
            }
        }
        return nil
    }
}
