import BluetoothExamples
import FoundationEssentials
import GattherdBluetooth
import Testing

@Suite struct ValueTests {
    private func check<Value: Readable & Writable & Equatable>(_ value: Value, _ octets: [UInt8]) throws {
        #expect(try value.octets() == octets)
        #expect(try Value(octets: octets) == value)
    }

    @Test func `values are encoded and decoded`() throws {
        try check(UInt8(200), [200])
        try check(Int8(-1), [0xFF])
        try check(UInt16(0x1234), [0x34, 0x12])
        try check(Int16(-2), [0xFE, 0xFF])
        try check(UInt32(0x1234_5678), [0x78, 0x56, 0x34, 0x12])
        try check(Int32.min, [0, 0, 0, 0x80])
        try check(UInt64.max, Array(repeating: 0xFF, count: 8))
        try check(Int64(-2), [0xFE] + Array(repeating: 0xFF, count: 7))
        try check(Float(1), [0, 0, 0x80, 0x3F])
        try check(-2.5, [0, 0, 0, 0, 0, 0, 0x04, 0xC0])
        try check(true, [1])
        try check("Grüße", Array("Grüße".utf8))
        try check([1, 2, 3] as [UInt8], [1, 2, 3])
        try check(Data([1, 2]), [1, 2])
        try check(MedFloat16(.finite(mantissa: -365, exponent: -1)), [0x93, 0xFE])
        try check(MedFloat32(.finite(mantissa: 365, exponent: -1)), [0x6D, 0x01, 0x00, 0xFF])
        try check(MedFloat16(.finite(mantissa: 2046, exponent: -2)), [0xFE, 0xE7])
        try check(MedFloat16(.finite(mantissa: -2048, exponent: 1)), [0x00, 0x18])
        for special in [.notANumber, .notAtThisResolution, .positiveInfinity, .negativeInfinity, .reserved]
            as [IEEE11073Number]
        {
            #expect(try MedFloat16(octets: MedFloat16(special).octets()).number == special)
            #expect(try MedFloat32(octets: MedFloat32(special).octets()).number == special)
        }
    }

    @Test func `invalid bytes are refused with the reason`() {
        #expect(throws: PayloadError.truncated(offset: 0, needed: 2, left: 1)) { try UInt16(octets: [1]) }
        #expect(throws: PayloadError.self) { try UInt16(octets: [1, 2, 3]) }
        #expect(throws: PayloadError.self) { try Float(octets: []) }
        #expect(throws: PayloadError.self) { try Bool(octets: [2]) }
        #expect(throws: PayloadError.invalid(reason: "not UTF-8")) { try String(octets: [0xFF]) }
        #expect(throws: PayloadError.self) { try MedFloat16(.finite(mantissa: 4000, exponent: 0)).octets() }
        #expect(throws: PayloadError.self) { try MedFloat16(.finite(mantissa: 1, exponent: 9)).octets() }
        #expect(throws: PayloadError.self) { try MedFloat16(.finite(mantissa: 2047, exponent: 0)).octets() }
    }

    @Test func `text loses the NULs at its end only`() throws {
        #expect(try String(octets: [0x41, 0, 0x42, 0, 0]) == "A\0B")
        #expect(try String(octets: [0, 0]) == "")
    }
}
