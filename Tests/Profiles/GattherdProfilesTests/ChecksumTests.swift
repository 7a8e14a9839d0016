import GattherdGATT
import GattherdProfiles
import Testing

/// Checksums of payloads.
struct ChecksumTests {
    /// The text "123456789", whose checksums catalogues of CRCs list.
    static let digits = "313233343536373839"

    private static func profile(_ check: String) -> String {
        DeclarativeText.profile(fields: ["{metric: x, type: u8}"], more: "    check: \(check)")
    }

    private static func isAccepted(_ check: String, _ hex: String) throws -> Bool {
        try DeclarativeText.decode(hex, by: DeclarativeText.compile(profile(check))) == ["x 49"]
    }

    /// Checksums, and those of the digits.
    static let catalogue = [
        ("{kind: sum8}", "DD"), ("{kind: sum16}", "DD01"), ("{kind: sum16, order: be}", "01DD"),
        ("{kind: xor8}", "31"), ("{kind: xor8, init: 0xFF}", "CE"), ("{kind: sum8, xor: 0xFF}", "22"),
        ("{kind: crc8}", "F4"), ("{kind: crc8, poly: 0x31, reflect: true}", "A1"),
        ("{kind: crc8, poly: 0x31, init: 0xFF}", "F7"), ("{kind: crc16, order: be}", "29B1"),
        ("{kind: crc16, init: 0, order: be}", "31C3"), ("{kind: crc16, init: 0x1D0F, order: be}", "E5CC"),
        ("{kind: crc16, poly: 0x8005, reflect: true}", "374B"),
        ("{kind: crc16, init: 0xFFFF, xor: 0xFFFF, reflect: true}", "6E90"),
        ("{kind: crc16, init: 0xC6C6, reflect: true}", "05BF"),
        ("{kind: crc16, init: 0xB2AA, reflect: true}", "D063"),
        ("{kind: crc16, init: 0x89EC, reflect: true}", "B126"), ("{kind: crc8, poly: 0x1D, init: 0xFD}", "7E"),
        ("{kind: crc32}", "2639F4CB"), ("{kind: crc32, xor: 0, init: 0, reflect: false, order: be}", "89A1897F"),
    ]

    @Test(arguments: catalogue)
    func `a checksum of the catalogue is accepted, another is rejected`(check: String, sum: String) throws {
        #expect(try Self.isAccepted(check, Self.digits + sum))
        let changed = "32" + Self.digits.dropFirst(2)
        let reason = try DeclarativeText.decode(changed + sum, by: DeclarativeText.compile(Self.profile(check)))
        #expect(reason.first?.hasPrefix("its checksum is 0x") == true, "\(reason)")
    }

    @Test func `a checksum may be anywhere and cover any bytes`() throws {
        #expect(try Self.isAccepted("{kind: sum8, bytes: 1..3, at: 3}", "31 02 03 05 FF"))
        #expect(try Self.isAccepted("{kind: sum8, bytes: -2.., at: -3}", "31 02 05 02 03"))
        #expect(try Self.isAccepted("{kind: sum8, bytes: .., at: 1}", "31 CF 00") == false)
        #expect(try Self.isAccepted("{kind: sum8, bytes: 0, at: -1}", "31 02 03 31"))
        #expect(try Self.isAccepted("{kind: sum16, at: -3}", "31 31 00 FF"))
    }

    @Test func `a payload that is too short is rejected`() throws {
        let profile = try DeclarativeText.compile(Self.profile("{kind: crc16, bytes: 0..5, at: 5}"))
        for count in 0..<7 {
            let hex = String(repeating: "31", count: count)
            #expect(try DeclarativeText.decode(hex, by: profile)[0].hasPrefix("it is too short for its checksum"))
        }
    }

    @Test func `every payload of every length is decoded or rejected`() throws {
        let slices = ["0..5", "-4..", "..", "2..-1", "-3..2", "511..512", "-512.."]
        for (place, slice) in zip([0, -2, 5, -7, 511, -512, 1], slices) {
            let profile = try DeclarativeText.compile(Self.profile("{kind: sum16, bytes: \"\(slice)\", at: \(place)}"))
            for count in 0...12 { _ = try DeclarativeText.decode(String(repeating: "A5", count: count), by: profile) }
        }
    }

    @Test(
        arguments: [
            (profile("{}"), "a check needs 'kind': one of sum8, sum16, xor8, crc8, crc16, crc32"),
            (profile("{kind: crc-16}"), "'crc-16' is invalid; expected one of"),
            (profile("{kind: sum8, poly: 7}"), "'poly' is for crc8, crc16 and crc32"),
            (profile("{kind: crc8, poly: 0x107}"), "'0x107' is invalid; expected an integer from 0 to 255"),
            (profile("{kind: crc16, at: -1}"), "a checksum of 2 bytes begins at -2 or before"),
            (
                profile("{kind: crc16, at: 0}"),
                "no bytes come before the checksum; write which it covers, such as 'bytes: 2..'"
            ),
            (profile("{kind: crc16, bytes: 5..2}"), "'5..2' is invalid; expected bytes of the payload, such as 2..5"),
            (profile("{kind: crc16, bytes: 1..2..3}"), "'1..2..3' is invalid; expected bytes of the payload"),
            (profile("{kind: crc16, bytes: x}"), "'x' is invalid; expected bytes of the payload"),
            (profile("{kind: crc16, order: big}"), "'big' is invalid; expected one of le, be"),
            (profile("crc16"), "a check must be a mapping of keys to values"),
        ]
    )
    func `errors in checksums have a position`(text: String, error: String) throws {
        let errors = try DeclarativeText.errors(text)
        #expect(errors.contains { $0.hasPrefix("10:") && $0.contains(error) }, "\(errors)")
    }
}
