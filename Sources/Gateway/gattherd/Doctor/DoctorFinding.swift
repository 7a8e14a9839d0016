import GattherdModel

/// The result of one check, and the remedy if it is not good.
struct DoctorFinding: Hashable {
    enum Severity: String, Comparable {
        case good
        /// Worth knowing.
        case note
        /// Works, but with limitations.
        case warning
        /// Keeps the gateway from working.
        case error

        private var rank: Int {
            switch self {
            case .good: 0
            case .note: 1
            case .warning: 2
            case .error: 3
            }
        }

        static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
    }

    /// The subject of the check: one word, stable for programs.
    let check: String
    let severity: Severity
    let text: String
    /// The command to run, or the change to make.
    let remedy: String?

    init(_ check: String, _ severity: Severity, _ text: String, remedy: String? = nil) {
        self.check = check
        self.severity = severity
        self.text = text
        self.remedy = remedy
    }

    static func good(_ check: String, _ text: String) -> Self { Self(check, .good, text) }

    func line(hasColour: Bool) -> String {
        let word = severity.rawValue.padded(to: 7)
        let mark = hasColour ? "\u{1B}[\(severity.colour)m\(word)\u{1B}[0m" : word
        let indent = String(repeating: " ", count: 8 + 14)
        let words = Terminal.harmless(text)
        let advice = remedy.map { "\n\(indent)-> \(Terminal.harmless($0))" } ?? ""
        return "\(mark) \(check.padded(to: 13)) \(words)\(advice)"
    }

    func writeJSON(to writer: inout JSONWriter) {
        writer.beginObject()
        for (key, value) in [("check", check), ("severity", severity.rawValue), ("finding", text)] {
            writer.key(key)
            writer.string(value)
        }
        writer.key("remedy")
        writer.optional(remedy) { $0.string($1) }
        writer.endObject()
    }
}

extension DoctorFinding.Severity {
    /// The number of an ANSI colour.
    fileprivate var colour: Int {
        switch self {
        case .good: 32
        case .note: 36
        case .warning: 33
        case .error: 31
        }
    }
}
