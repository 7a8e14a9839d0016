import GattherdModel
import Testing

struct DecimalTests {
    @Test(
        arguments: [
            (0.300_000_000_000_000_04, 0.3), (20.490_000_000_000_002, 20.49), (-20.459_999_999_999_997, -20.46),
            (20.46, 20.46), (0, 0), (1_000_000_000_000_001, 1_000_000_000_000_001), (1e300, 1e300),
            (.leastNonzeroMagnitude, .leastNonzeroMagnitude),
            (123_456_789_012_345, 123_456_789_012_345), (999_999_999_999_999.9, 1e15),
            (0.000_123_000_000_000_000_01, 0.000_123),
        ] as [(Double, Double)]
    )
    func `noise after the last reliable digit is rounded off`(number: Double, rounded: Double) {
        #expect(number.rounded(toDigits: Double.reliableDigits) == rounded)
    }

    @Test(
        arguments: [1, 3, 7, 999, 1023, 65_535, 9_999_999, 123_456_789, 999_999_999_999_999] as [Int64]
    )
    func `decimals of at most 15 digits are unchanged`(mantissa: Int64) throws {
        for exponent in -8...6 {
            let number = try #require(Double("\(mantissa)e\(exponent)"))
            #expect(number.rounded(toDigits: Double.reliableDigits) == number)
        }
    }

    @Test func `a mean has nine digits, and three decimals of a large number`() {
        let (small, large) = (217.0 / 3, 37_037_036_703.0 / 3)
        #expect(small.rounded(toDigits: Double.meaningfulDigits, keepingDecimals: 3) == 72.333_333_3)
        #expect(large.rounded(toDigits: Double.meaningfulDigits, keepingDecimals: 3) == 12_345_678_901)
        #expect((100_000_000_000.0 / 3).rounded(toDigits: 9, keepingDecimals: 3) == 33_333_333_333.333)
    }

    @Test func `numbers that are not finite are unchanged`() {
        #expect(Double.nan.rounded(toDigits: Double.reliableDigits).isNaN)
        #expect(Double.infinity.rounded(toDigits: Double.reliableDigits) == .infinity)
        #expect(Double(shortest: Float.nan).isNaN)
        #expect(Double(shortest: -Float.infinity) == -.infinity)
    }

    @Test(
        arguments: [21.1, 0.1, -40.05, .leastNonzeroMagnitude, 3.402_823_5e38, 16_777_216, 65_504, 0.000_976_562_5]
            as [Float]
    )
    func `a single-precision number has its shortest decimal`(number: Float) throws {
        #expect(Double(shortest: number) == Double(number.description))
        #expect(Float(Double(shortest: number)) == number)
    }
}
