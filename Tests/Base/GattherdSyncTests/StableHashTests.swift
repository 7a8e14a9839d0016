import GattherdSync
import Testing

@Suite struct StableHashTests {
    private static let vectors: [(String, UInt64)] = [
        ("", 0xCBF2_9CE4_8422_2325), ("a", 0xAF63_DC4C_8601_EC8C), ("foobar", 0x8594_4171_F739_67E8),
    ]

    @Test(arguments: vectors)
    func `the hash is FNV-1a`(text: String, hash: UInt64) {
        #expect(StableHash.fnv1a(text.utf8) == hash)
    }
}
