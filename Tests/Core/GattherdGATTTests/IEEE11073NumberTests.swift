import GattherdGATT
import Testing

struct IEEE11073NumberTests {
    private static func word(_ hex: String) -> UInt32 {
        (Hexadecimal.octets(hex) ?? []).reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    @Test(
        arguments: [
            ("61 00", 97), ("0F F0", 1.5), ("A0 F0", 16), ("37 C0", 0.0055), ("64 B0", 0.001), ("16 FE", -49),
            ("8A 0F", -118), ("03 80", 3e-8), ("D0 17", 20_000), ("FD 77", 20_450_000_000), ("03 88", -0.00002045),
            ("FE E7", 20.46), ("FF F7", 204.7), ("00 F8", -204.8), ("02 18", -20460), ("01 78", -20_470_000_000),
        ] as [(String, Double)]
    )
    func `a medfloat16 has mantissa and exponent in two's complement`(hex: String, value: Double) {
        #expect(IEEE11073Number(sfloat: UInt16(truncatingIfNeeded: Self.word(hex))).value == value)
    }

    @Test(
        arguments: [
            ("6D 01 00 FF", 36.5), ("DA 03 00 FF", 98.6), ("5F 0E 00 FE", 36.79), ("93 FF FF FF", -10.9),
            ("01 00 00 00", 1), ("01 00 00 16", 1e22), ("01 00 00 17", 1e23), ("01 00 00 7F", 1e127),
            ("01 00 00 80", 1e-128), ("FF FF 7F FF", 838_860.7), ("00 00 80 01", -83_886_080),
            ("FE FF 7F FE", 83_886.06),
        ] as [(String, Double)]
    )
    func `a medfloat32 is decoded to the last digit`(hex: String, value: Double) {
        #expect(IEEE11073Number(float: Self.word(hex)).value == value)
    }

    @Test(
        arguments: [
            (0x07FF, 0x7F_FFFF, IEEE11073Number.notANumber), (0x0800, 0x80_0000, .notAtThisResolution),
            (0x07FE, 0x7F_FFFE, .positiveInfinity), (0x0802, 0x80_0002, .negativeInfinity),
            (0x0801, 0x80_0001, .reserved),
        ] as [(UInt16, UInt32, IEEE11073Number)]
    )
    func `the five special values have exponent 0`(short: UInt16, long: UInt32, meaning: IEEE11073Number) {
        #expect(IEEE11073Number(sfloat: short) == meaning && IEEE11073Number(float: long) == meaning)
        #expect(meaning.value == nil && meaning.reason != nil)
        for exponent in 1..<16 as Range<UInt16> {
            let numbers = [
                IEEE11073Number(sfloat: short | exponent << 12), IEEE11073Number(float: long | UInt32(exponent) << 28),
            ]
            #expect(numbers.allSatisfy { $0.value != nil && $0.reason == nil })
        }
    }

    @Test func `every medfloat16 is finite or special`() {
        for word in UInt16.min...UInt16.max {
            let number = IEEE11073Number(sfloat: word)
            if case .finite = number { #expect(number.value?.isFinite == true) }
        }
    }
}
