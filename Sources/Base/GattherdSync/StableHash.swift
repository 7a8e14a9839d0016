/// A hash that is the same in every run and on every machine.
///
/// FNV-1a with 64 bits: https://datatracker.ietf.org/doc/html/draft-eastlake-fnv.
package struct StableHash: Sendable {
    /// The hash of the bytes that were added.
    package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}

    package mutating func add(_ byte: UInt8) {
        value = (value ^ UInt64(byte)) &* 0x100_0000_01B3
    }

    /// Returns the hash of `bytes`.
    package static func fnv1a(_ bytes: some Sequence<UInt8>) -> UInt64 {
        var hash = Self()
        for byte in bytes { hash.add(byte) }
        return hash.value
    }
}
