/// The token of clients that may write.
///
/// Its description is `***`.
package struct AccessToken: Hashable, Sendable {
    /// The minimum length in characters: shorter tokens could be guessed.
    package static let shortest = 16

    private let bytes: [UInt8]

    /// Returns `nil` for fewer than ``shortest`` characters, and for others than visible ASCII.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count >= Self.shortest, bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        self.bytes = bytes
    }

    /// Compares in a time that depends only on `candidate`.
    func matches(_ candidate: some StringProtocol) -> Bool {
        var difference = candidate.utf8.count ^ bytes.count
        for (index, byte) in candidate.utf8.enumerated() {
            difference |= Int(byte ^ bytes[index % bytes.count])
        }
        return difference == 0
    }
}

extension AccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "***" }
    package var debugDescription: String { "***" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
