import GattherdGATT
import Testing

struct PayloadCursorTests {
    private static let octets: [UInt8] = [0x01, 0x80, 0xFF, 0x7F, 0x10, 0x20, 0x30, 0xC0, 0x55]

    @Test func `integers are little-endian and signed`() throws {
        var cursor = PayloadCursor(Self.octets.span)
        #expect(try cursor.i8() == 1)
        #expect(try cursor.i16() == -128)
        #expect(try cursor.u24() == 0x20_107F)
        #expect(try cursor.signed(octets: 2) == -16_336)
        #expect(cursor.left == 1 && cursor.offset == 8)
    }

    @Test(arguments: [Int32(-2), -8_388_608, 8_388_607, 0])
    func `24-bit integers are signed`(number: Int32) throws {
        let octets = [0, 8, 16].map { UInt8(truncatingIfNeeded: number >> $0) }
        var cursor = PayloadCursor(octets.span)
        #expect(try cursor.i24() == number)
    }

    @Test func `integers of every width are read in both byte orders`() throws {
        for width in 1...8 {
            var little = PayloadCursor(Self.octets.span)
            var big = PayloadCursor(Self.octets.span)
            let prefix = Self.octets.prefix(width)
            #expect(try little.unsigned(octets: width) == prefix.reversed().reduce(0) { $0 << 8 | UInt64($1) })
            #expect(try big.unsignedBigEndian(octets: width) == prefix.reduce(0) { $0 << 8 | UInt64($1) })
        }
    }

    @Test func `a missing field throws and consumes nothing`() throws {
        var cursor = PayloadCursor([0x01].span)
        do {
            _ = try cursor.u32()
            Issue.record("read four octets of one")
        } catch {
            #expect(error == .truncated(offset: 0, needed: 4, left: 1))
        }
        #expect(try cursor.u8() == 1)
    }

    @Test func `a negative number of octets throws`() {
        #expect(throws: PayloadError.self) {
            var cursor = PayloadCursor(Self.octets.span)
            try cursor.skip(-1)
        }
    }

    @Test(
        arguments: [
            ("41 63 6D 65 00", "Acme"), ("31 2E 30", "1.0"), ("20 61 20 00 20", " a"), ("", ""), ("00 00", ""),
            ("61 FF 62", "a\u{FFFD}b"), ("C3 A9", "é"),
        ]
    )
    func `text loses its padding, and invalid UTF-8 is replaced`(hex: String, text: String) throws {
        let octets = try #require(Hexadecimal.octets(hex))
        var cursor = PayloadCursor(octets.span)
        #expect(try cursor.text(octets: octets.count) == text)
    }

    @Test func `IEEE 754 numbers are read exactly`() throws {
        let octets: [UInt8] = [0x00, 0x00, 0xC0, 0x3F, 0, 0, 0, 0, 0, 0, 0xF8, 0xBF]
        var cursor = PayloadCursor(octets.span)
        #expect(try cursor.f32() == 1.5)
        #expect(try cursor.f64() == -1.5)
        try cursor.end()
    }
}
