import GattherdSync

/// The role of a gateway at the centre.
package enum FleetRole {
    /// The longest name that PostgreSQL keeps, in bytes.
    private static let longest = 63

    /// The role of a gateway, unless a person has chosen another one.
    ///
    /// A long name is cut, and gets a hash of the whole, so that no two gateways have one role.
    package static func name(of gateway: String) -> String {
        let name = "gattherd_\(gateway)"
        guard name.utf8.count > longest else { return name }
        let digits = String(StableHash.fnv1a(gateway.utf8), radix: 16)
        let suffix = "_" + String(repeating: "0", count: 16 - digits.count) + digits
        return String(name.prefix(longest - suffix.count)) + suffix
    }

    /// Returns a password of 32 random letters and digits: 190 bits.
    static func makePassword() -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        var random = SystemRandomNumberGenerator()
        return String((0..<32).compactMap { _ in letters.randomElement(using: &random) })
    }
}
