import GattherdYAML
import Testing

@Suite struct QuantityTests {
    @Test(arguments: [
        ("500ms", 500_000), ("1.5s", 1_500_000), ("0.25m", 15_000_000), ("24h", 86_400_000_000),
        ("2w", 1_209_600_000_000),
        ("1y", 31_536_000_000_000), ("7us", 7), ("0s", 0), ("0.000001s", 1),
    ])
    func `a duration is a number and a unit`(text: String, microseconds: Int64) {
        #expect(QuantityGrammar.duration(text) == .microseconds(microseconds))
    }

    @Test(arguments: [
        "", "5", "s", "5 s", "-5s", "+5s", "5S", "1e3s", ".5s", "5.s", "1.2.3s", "1.1234567s", "9999999999y", "٣s",
    ])
    func `an incomplete duration is rejected`(text: String) {
        #expect(QuantityGrammar.duration(text) == nil)
    }

    @Test(arguments: [("500MB", 500_000_000), ("2GiB", 2_147_483_648), ("1.5KiB", 1536), ("17B", 17)])
    func `a size is a number and a unit`(text: String, bytes: UInt64) {
        #expect(QuantityGrammar.size(text) == bytes)
    }

    @Test(arguments: ["1y", "30d", "36h", "5m", "90s", "250ms", "0s"])
    func `a printed duration can be read again`(text: String) throws {
        #expect(QuantityGrammar.text(try #require(QuantityGrammar.duration(text))) == text)
    }
}
