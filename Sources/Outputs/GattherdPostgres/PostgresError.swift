/// The reason why a statement was not performed.
package struct PostgresError: Error, Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// No connection, or it was lost; it is not known whether the statement was performed.
        case connection
        /// The time has passed, or the caller was cancelled.
        case cancelled
        /// The server's answer, with its SQLSTATE.
        case server(String)
        /// Not sent.
        case local
    }

    package let kind: Kind
    /// The words of the server or of libpq, on one line.
    package let detail: String

    init(_ kind: Kind, _ detail: String) {
        (self.kind, self.detail) = (kind, detail)
    }

    package var sqlState: String? {
        if case .server(let state) = kind { state } else { nil }
    }
}

extension String {
    /// The text on one line of at most 400 bytes.
    var onOneLine: String {
        let words = split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return words.utf8.count > 400 ? String(words.prefix(400)) + "…" : words
    }

    /// The text with U+FFFD for NUL, which no text of PostgreSQL can have.
    var withoutNUL: String {
        utf8.contains(0) ? String(String.UnicodeScalarView(unicodeScalars.map { $0 == "\0" ? "\u{FFFD}" : $0 })) : self
    }
}
