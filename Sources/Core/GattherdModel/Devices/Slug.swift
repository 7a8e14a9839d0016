/// The rules for names of gateways, devices, streams and controls.
public enum Slug {
    /// The maximum length in bytes.
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
    /// Returns the text, cut to at most `limit` bytes of UTF-8; a cut text ends with `…`.
    ///
    /// Texts from outside are cut before they are stored, to bound the size of a row.
    public func cut(toBytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        let mark = "…"
        var end = utf8.index(startIndex, offsetBy: max(0, limit - mark.utf8.count))
        while end > startIndex, String.Index(end, within: unicodeScalars) == nil { end = utf8.index(before: end) }
        return String(self[..<end]) + mark
    }
}
