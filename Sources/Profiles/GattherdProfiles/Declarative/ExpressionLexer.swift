/// Splits an expression into tokens.
struct ExpressionLexer {
    enum Token: Hashable {
        case name(String)
        case number(Int64)
        /// A number with a decimal point or an exponent, in formulas.
        case real(Double)
        /// An operator or bracket: `. [ ] : ( ) ! & | == != < <= > >= + - * / %`, also in doubled or word form.
        case sign(String)
        case end
    }

    /// A character sequence that is not a token.
    struct Failure: Error {
        let offset: Int
        let reason: String
    }

    private static let words = ["and": "&", "or": "|", "not": "!"]
    private static let signs = [
        "==", "!=", "<=", ">=", "&&", "||", "<", ">", "&", "|", "!", "(", ")", "[", "]", ":", ".", "+", "-", "*",
        "/", "%", ",",
    ]

    /// Operators of other languages, and what to write instead.
    private static let shifts = [
        (">>", "write the bits 7 to 4 of f as f[7:4]"), ("<<", "multiply: f*256 shifts f by 8 bits"),
    ]

    private let text: [Character]
    private(set) var offset = 0
    /// The offset of the last token.
    private(set) var start = 0
    /// True for a formula, which may have numbers such as 0.57 and 1e-6.
    private let isFormula: Bool

    init(_ text: String, isFormula: Bool) {
        self.text = Array(text)
        self.isFormula = isFormula
    }

    mutating func next() throws(Failure) -> Token {
        while offset < text.count, text[offset] == " " { offset += 1 }
        start = offset
        guard offset < text.count else { return .end }
        if Self.isWord(text[offset]) { return try word() }
        for (sign, remedy) in Self.shifts where text[offset...].starts(with: sign) {
            throw Failure(offset: offset, reason: "there is no '\(sign)'; \(remedy)")
        }
        for sign in Self.signs where text[offset...].starts(with: sign) {
            offset += sign.count
            return .sign(sign == "&&" ? "&" : sign == "||" ? "|" : sign)
        }
        let hint = text[offset] == "=" ? "write '=='" : "expected a name, a number or one of ! & | == < >"
        throw Failure(offset: offset, reason: "unexpected '\(text[offset])'; \(hint)")
    }

    private mutating func word() throws(Failure) -> Token {
        if isFormula, let real = try real() { return .real(real) }
        while offset < text.count, Self.isWord(text[offset]) { offset += 1 }
        let word = String(text[start..<offset])
        if let sign = Self.words[word] { return .sign(sign) }
        guard word.first?.isNumber == true else { return .name(word) }
        guard let number = Integers.parse(word) else {
            throw Failure(offset: start, reason: "'\(word)' is not a number")
        }
        return .number(number)
    }

    /// Reads digits with a decimal point or an exponent; `nil` for another word.
    private mutating func real() throws(Failure) -> Double? {
        let rest = String(text[start...].prefix(40))
        guard let number = rest.prefixMatch(of: /[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?/)?.output.0,
            number.contains(where: { $0 == "." || $0 == "e" || $0 == "E" })
        else { return nil }
        guard let value = Double(number), value.isFinite else {
            throw Failure(offset: start, reason: "'\(number)' is too large")
        }
        offset += number.count
        return value
    }

    private static func isWord(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || character == "_")
    }
}
