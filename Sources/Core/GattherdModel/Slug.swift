/// The names that gateways, devices, streams and controls may have.
public enum Slug {
    /// The most bytes of a name.
    public static let longest = 64

    /// True for 1 to 64 of `a-z`, `0-9`, `_` and `-`.
    public static func isValid(_ text: String) -> Bool {
        (1...longest).contains(text.utf8.count) && text.utf8.allSatisfy { isAllowed($0) }
    }

    /// True for a byte of `a-z`, `0-9`, `_` and `-`.
    public static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"),
            UInt8(ascii: "-"):
            true
        default: false
        }
    }
}

extension String {
    /// The text, cut to at most `limit` bytes of UTF-8 if it is longer; a cut text ends with `…`.
    ///
    /// Texts from outside are cut before they are stored: their senders must not decide how large a row becomes.
    public func cut(toBytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        let mark = "…"
        var end = utf8.index(startIndex, offsetBy: max(0, limit - mark.utf8.count))
        while end > startIndex, String.Index(end, within: unicodeScalars) == nil { end = utf8.index(before: end) }
        return String(self[..<end]) + mark
    }
}
