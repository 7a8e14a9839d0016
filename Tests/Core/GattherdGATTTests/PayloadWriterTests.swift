import GattherdGATT
import Testing

struct PayloadWriterTests {
    @Test func `integers are written little-endian in the given width`() throws {
        var writer = PayloadWriter()
        try writer.integer(-2, as: Int16.self)
        try writer.integer(0x0102_0304, as: UInt32.self)
        writer.append(0xAABBCC, octets: 3)
        writer.append([7])
        #expect(writer.octets == [0xFE, 0xFF, 0x04, 0x03, 0x02, 0x01, 0xCC, 0xBB, 0xAA, 0x07])
    }

    @Test(arguments: [-1, 256, .max, .min] as [Int64])
    func `a number that does not fit throws`(number: Int64) {
        var writer = PayloadWriter()
        #expect(throws: PayloadError.self) { try writer.integer(number, as: UInt8.self) }
        #expect(writer.octets.isEmpty)
    }
}
