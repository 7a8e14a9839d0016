package import GattherdModel

/// The hash in resolvable private addresses: the function ah of the Core Specification, Vol 3, Part H, 2.2.2.
package enum AddressHash {
    /// Returns the hash, 24 bits, of a random number of 24 bits; `nil` if AES fails.
    package static func compute(_ random: UInt32, with key: IdentityKey) -> UInt32? {
        let number = [16, 8, 0].map { UInt8(truncatingIfNeeded: random >> UInt32($0)) }
        // In counter mode, zeros are encrypted to the encryption of the initial counter block.
        let block = EncryptedPayload(
            mode: .ctr,
            ciphertext: Array(repeating: 0, count: 16),
            tag: [],
            nonce: Array(repeating: 0, count: 13) + number
        )
        return block.open(with: key.octets)?.suffix(3).reduce(0) { $0 << 8 | UInt32($1) }
    }
}
