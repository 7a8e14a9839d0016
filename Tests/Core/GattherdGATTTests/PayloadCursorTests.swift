import GattherdGATT
import Testing

struct PayloadCursorTests {
    private static let octets: [UInt8] = [0x01, 0x80, 0xFF, 0x7F, 0x10, 0x20, 0x30, 0xC0, 0x55]

    @Test func `Integers are little-endian and keep their sign`() throws {
        var cursor = PayloadCursor(Self.octets.span)
        #expect(try cursor.i8() == 1)
        #expect(try cursor.i16() == -128)
        #expect(try cursor.u24() == 0x20_107F)
        #expect(try cursor.signed(octets: 2) == -16_336)
        #expect(cursor.left == 1 && cursor.offset == 8)
    }

    @Test(arguments: [Int32(-2), -8_388_608, 8_388_607, 0])
    func `Three octets keep their sign`(number: Int32) throws {
        let octets = [0, 8, 16].map { UInt8(truncatingIfNeeded: number >> $0) }
        var cursor = PayloadCursor(octets.span)
        #expect(try cursor.i24() == number)
    }

    @Test func `Integers of every width are read in both orders`() throws {
        for width in 1...8 {
            var little = PayloadCursor(Self.octets.span)
            var big = PayloadCursor(Self.octets.span)
            let prefix = Self.octets.prefix(width)
            #expect(try little.unsigned(octets: width) == prefix.reversed().reduce(0) { $0 << 8 | UInt64($1) })
            #expect(try big.unsignedBigEndian(octets: width) == prefix.reduce(0) { $0 << 8 | UInt64($1) })
        }
    }

    @Test func `A field that is not there is an error, and nothing is read`() throws {
        var cursor = PayloadCursor([0x01].span)
        do {
            _ = try cursor.u32()
            Issue.record("read four octets of one")
        } catch {
            #expect(error == .truncated(offset: 0, needed: 4, left: 1))
        }
        #expect(try cursor.u8() == 1)
    }

    @Test func `A negative number of octets is an error`() {
        #expect(throws: PayloadError.self) {
            var cursor = PayloadCursor(Self.octets.span)
            try cursor.skip(-1)
        }
    }

    @Test(
        "Text loses its padding and what is not UTF-8",
        arguments: [
            ("41 63 6D 65 00", "Acme"), ("31 2E 30", "1.0"), ("20 61 20 00 20", " a"), ("", ""), ("00 00", ""),
            ("61 FF 62", "a\u{FFFD}b"), ("C3 A9", "é"),
        ]
    )
    func text(hex: String, text: String) throws {
        let octets = try #require(Hexadecimal.octets(hex))
        var cursor = PayloadCursor(octets.span)
        #expect(try cursor.text(octets: octets.count) == text)
    }

    @Test func `IEEE 754 numbers are read as they are`() throws {
        let octets: [UInt8] = [0x00, 0x00, 0xC0, 0x3F, 0, 0, 0, 0, 0, 0, 0xF8, 0xBF]
        var cursor = PayloadCursor(octets.span)
        #expect(try cursor.f32() == 1.5)
        #expect(try cursor.f64() == -1.5)
        try cursor.end()
    }
}
