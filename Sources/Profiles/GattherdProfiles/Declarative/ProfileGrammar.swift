import GattherdGATT
import GattherdModel
import GattherdYAML

/// The grammar of a kind of scalar.
struct ProfileGrammar<Value: Sendable>: Sendable {
    /// The expectation for error messages, with an example.
    let expectation: String
    /// The valid words, for suggestions.
    var words: [String] = []
    let parse: @Sendable (String) -> Value?

    init(_ expectation: String, words: [String] = [], parse: @escaping @Sendable (String) -> Value?) {
        self.expectation = expectation
        self.words = words
        self.parse = parse
    }

    /// Parses a scalar; reports an invalid one.
    func read(_ node: YAMLNode, _ findings: ProfileFindings) -> Value? {
        guard let text = node.text, !node.isNull else {
            findings.report("this is \(node.kind); expected \(expectation)", at: node.position)
            return nil
        }
        if let value = parse(text) { return value }
        let hint = Spelling.nearest(to: text, among: words).map { "; did you mean '\($0)'?" }
        findings.report("'\(text.brief)' is invalid; expected \(expectation)\(hint ?? "")", at: node.position)
        return nil
    }
}

extension ProfileGrammar {
    /// A grammar of a fixed list of words.
    static func choice(_ choices: [(word: String, value: Value)]) -> Self {
        let words = choices.map(\.word)
        return ProfileGrammar("one of \(words.joined(separator: ", "))", words: words) { text in
            choices.first { $0.word == text }?.value
        }
    }
}

extension ProfileGrammar<String> {
    static let slug = ProfileGrammar("a name of a-z, 0-9, '-' and '_', at most \(ProfileRules.longestName)") { text in
        ProfileRules.isSlug(text) ? text : nil
    }

    static let identifier = ProfileGrammar("a name of a-z, 0-9 and '_', at most \(ProfileRules.longestName)") { text in
        ProfileRules.isIdentifier(text) ? text : nil
    }

    /// A human-readable text: a title, a unit, a label.
    static let words = ProfileGrammar("a text of 1 to 255 bytes without control characters") { text in
        let isPlain = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
        return isPlain && (1...255).contains(text.utf8.count) ? text : nil
    }
}

extension ProfileGrammar<BluetoothUUID> {
    static let uuid = ProfileGrammar("a UUID such as 180d or 7a4bbfe6-999f-4717-b63a-066e06971f59") {
        BluetoothUUID($0)
    }
}

extension ProfileGrammar<Bool> {
    static let boolean = choice([("true", true), ("false", false)])
}

extension ProfileGrammar<Duration> {
    static func duration(_ range: ClosedRange<Duration>) -> Self {
        let bounds = "\(QuantityGrammar.text(range.lowerBound)) to \(QuantityGrammar.text(range.upperBound))"
        return ProfileGrammar("a duration from \(bounds), such as 500ms or 30s") { text in
            QuantityGrammar.duration(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }
}

extension ProfileGrammar<Int64> {
    /// The contract number; numbers other than 1 parse as well and get a special message.
    static let contract = ProfileGrammar("the number 1, as in contract: 1") { text in
        Integers.parse(text).flatMap { $0 > 0 ? $0 : nil }
    }

    static func integer(_ range: ClosedRange<Int64>) -> Self {
        ProfileGrammar("an integer from \(range.lowerBound) to \(range.upperBound), such as 10 or 0x0A") { text in
            Integers.parse(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }
}

extension ProfileGrammar<Rational> {
    static let number = ProfileGrammar("a number such as 0.01, 1e-3 or 1/1024") { Rational($0) }
    static let base = ProfileGrammar("a number above 0, such as 1.1") { text in
        Rational(text).flatMap { $0.numerator > 0 ? $0 : nil }
    }
}

extension ProfileGrammar<[UInt8]> {
    static let octets = ProfileGrammar("bytes in hexadecimal, such as \"16 48 00 04\"") { text in
        Hexadecimal.octets(text).flatMap { $0.count <= 512 ? $0 : nil }
    }
}

extension ProfileGrammar<BytePattern> {
    static let pattern = ProfileGrammar("the first bytes, such as \"80 05 01\", \"80 05 ??\" or \"80 4?\"") { text in
        BytePattern(text)
    }
    static let response = ProfileGrammar("the first bytes of a response, such as \"80 05 01\" or \"80 05 ??\"") {
        BytePattern($0)
    }
    static let messageStart = ProfileGrammar("the first bytes of a message, such as \"DD 03\" or \"DD ??\"") { text in
        BytePattern(text).flatMap { text.utf8.count <= 64 ? $0 : nil }
    }
}

extension String {
    private static let longestQuote = 80

    /// The text, or the beginning of a long one, for an error message.
    var brief: String { count > Self.longestQuote ? prefix(Self.longestQuote) + "…" : self }
}

/// The integer syntax of profiles.
enum Integers {
    /// Parses `10`, `-3` or `0x0A`.
    static func parse(_ text: some StringProtocol) -> Int64? {
        let isNegative = text.hasPrefix("-")
        let digits = isNegative ? text.dropFirst() : text[...]
        guard let first = digits.utf8.first, first != UInt8(ascii: "+"), first != UInt8(ascii: "-") else { return nil }
        guard digits.hasPrefix("0x") else { return Int64(text) }
        guard let magnitude = UInt64(digits.dropFirst(2), radix: 16), digits.utf8.dropFirst(2).first != 0x2B else {
            return nil
        }
        return isNegative ? Int64(exactly: magnitude).map { -$0 } : Int64(exactly: magnitude)
    }
}

/// An error in a declarative profile, with its position.
struct ProfileFinding: Hashable {
    let position: YAMLPosition
    /// The message: the error, the expectation and a suggestion.
    let reason: String
}

/// The errors found in a declarative profile so far.
final class ProfileFindings {
    private var all: [ProfileFinding] = []

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }

    /// The errors in the order of the text.
    var sorted: [ProfileFinding] { all.sorted { $0.position < $1.position } }

    func report(_ reason: String, at position: YAMLPosition) {
        all.append(ProfileFinding(position: position, reason: reason))
    }
}
