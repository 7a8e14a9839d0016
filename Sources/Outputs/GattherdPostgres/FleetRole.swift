/// The role of a gateway at the centre.
package enum FleetRole {
    /// The longest name that PostgreSQL keeps, in bytes.
    private static let longest = 63

    /// The role of a gateway, whose name is a slug, unless somebody has chosen another one.
    package static func name(of gateway: String) -> String { String("gattherd_\(gateway)".prefix(longest)) }

    /// Returns a password of 32 random letters and digits: 190 bits.
    static func makePassword() -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        var random = SystemRandomNumberGenerator()
        return String((0..<32).compactMap { _ in letters.randomElement(using: &random) })
    }
}
