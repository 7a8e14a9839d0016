import Testing

@testable import gattherd

@Suite struct PayloadArgumentTests {
    @Test(
        arguments: [
            ("16 48", [[0x16, 0x48]]), ("1648,1649", [[0x16, 0x48], [0x16, 0x49]]), ("01, 02", [[1], [2]]), ("", [[]]),
            ("0x16, 0x48, 0x0", [[0x16, 0x48, 0]]), ("{0x16,0x48,}", [[0x16, 0x48]]),
            ("0x1648, 0x1649", [[0x16, 0x48], [0x16, 0x49]]), (#"\x16\x48"#, [[0x16, 0x48]]),
            ("zz", nil), ("1", nil), ("16, 4", nil),
        ] as [(String, [[UInt8]]?)]
    )
    func `payloads have commas between them, and an array of C is one`(text: String, payloads: [[UInt8]]?) {
        #expect(ProfileDecodeCommand.payloads(text) == payloads)
    }
}
