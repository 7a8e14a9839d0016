/// What whoever may write has to show; prints as `***` wherever it is printed.
public struct AccessToken: Hashable, Sendable {
    /// Fewer characters could be guessed.
    public static let shortest = 16

    private let octets: [UInt8]

    /// `nil` for less than ``shortest`` characters, or other ones than those of ASCII that can be seen.
    public init?(_ text: some StringProtocol) {
        let octets = Array(text.utf8)
        guard octets.count >= Self.shortest, octets.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        self.octets = octets
    }

    /// Compares in a time that depends on `candidate` only.
    func matches(_ candidate: some StringProtocol) -> Bool {
        var difference = candidate.utf8.count ^ octets.count
        for (index, octet) in candidate.utf8.enumerated() {
            difference |= Int(octet ^ octets[index % octets.count])
        }
        return difference == 0
    }
}

extension AccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var debugDescription: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
