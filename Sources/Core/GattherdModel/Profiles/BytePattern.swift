import GattherdGATT

/// A pattern for the first bytes of a value, with wildcards.
public struct BytePattern: Hashable, Sendable {
    /// One byte of the pattern.
    private struct Octet: Hashable {
        var value: UInt8
        /// The bits of `value` that count: none, four or all of them.
        var mask: UInt8

        func fits(_ other: UInt8) -> Bool { (value ^ other) & mask == 0 }
    }

    private let octets: [Octet]

    /// Parses a pattern such as `80 05 ??` or `4? 1C`; `nil` for an invalid or empty one.
    ///
    /// A question mark is any hexadecimal digit.
    public init?(_ text: some StringProtocol) {
        let words = text.split(separator: " ")
        let octets = words.map { Self.octets(String($0)) }
        guard !words.isEmpty, octets.allSatisfy({ $0?.isEmpty == false }) else { return nil }
        self.octets = octets.flatMap { $0 ?? [] }
    }

    /// Returns the bytes of a word without spaces.
    private static func octets(_ word: String) -> [Octet]? {
        guard word.contains("?") else { return Hexadecimal.octets(word)?.map { Octet(value: $0, mask: 0xFF) } }
        let digits = word.compactMap(digit)
        guard digits.count == word.count, digits.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { index in
            let (high, low) = (digits[index], digits[index + 1])
            return Octet(value: high.value << 4 | low.value, mask: high.mask << 4 | low.mask)
        }
    }

    private static func digit(_ character: Character) -> Octet? {
        guard character != "?" else { return Octet(value: 0, mask: 0) }
        guard character.isASCII, let value = character.hexDigitValue else { return nil }
        return Octet(value: UInt8(value), mask: 0xF)
    }

    /// The number of bytes.
    var count: Int { octets.count }

    /// The number of bytes that are not `??`.
    package var literalCount: Int { octets.count(where: { $0.mask != 0 }) }

    /// True if a byte sequence can start with both patterns.
    func isCompatible(with other: BytePattern) -> Bool {
        zip(octets, other.octets).allSatisfy { ($0.value ^ $1.value) & $0.mask & $1.mask == 0 }
    }

    /// True if `value` starts with the pattern or is the beginning of such a value.
    func canBegin(_ value: some Collection<UInt8>) -> Bool {
        zip(octets, value).allSatisfy { $0.fits($1) }
    }

    /// True if `value` starts with the pattern.
    public func fits(_ value: some Collection<UInt8>) -> Bool {
        value.count >= octets.count && canBegin(value)
    }
}

extension BytePattern: CustomStringConvertible {
    /// The text form, for example `80 05 ??`.
    public var description: String {
        octets.map { octet in
            let digits = Hexadecimal.text([octet.value].span)
            let high = octet.mask & 0xF0 == 0 ? "?" : String(digits.prefix(1))
            return high + (octet.mask & 0xF == 0 ? "?" : String(digits.suffix(1)))
        }.joined(separator: " ")
    }
}
