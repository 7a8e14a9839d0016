import GattherdModel
import Testing

struct WriteTemplateTests {
    /// Sunday 1 March 2026, 01:02:03 UTC; half past six in the evening of Saturday in a zone 6.5 hours behind.
    private static let moment: Int64 = 1_772_326_923

    @Test(
        arguments: [
            ("A5 {year-2000:u8}{month:u8}{day:u8}{hour:u8}{minute:u8}{second:u8}{weekday:u8}", "a51a021c12200306"),
            ("{year:u16le}{now:u32be} FF", "ea0769a3900bff"), ("{local-1772303523:u8}", "00"), ("{month-1:u8}", "01"),
            ("{pin:u16be} {pin+1:u8}", "001213"), ("00", "00"),
        ]
    )
    func `numbers are written at their places`(text: String, hex: String) throws {
        let time = WriteTime(seconds: Self.moment, offset: -23_400)
        let template = try #require(WriteTemplate(text, options: ["pin"]))
        let octets = try #require(
            template.octets { variable in
                switch variable {
                case .time(let unit): time[unit]
                case .option: 0x12
                case .next, .index, .since: nil
                }
            }
        )
        #expect(octets.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == hex)
        #expect(octets.count == template.count)
    }

    @Test func `a number that does not fit, or is unknown, gives no bytes`() throws {
        let template = try #require(WriteTemplate("AA {next-5:u8}"))
        #expect(template.octets { _ in 260 } == [0xAA, 255])
        for number in [4, 261, Int64.min, .max] { #expect(template.octets { _ in number } == nil) }
        #expect(template.octets { _ in nil } == nil)
    }

    @Test(arguments: ["{now+:u8}", "{now-x:u8}", "{pin:u8}", "{now:u8", "{+1:u8}", "{now+9999999999999:u56}", "", " "])
    func `an invalid template is refused`(text: String) {
        #expect(WriteTemplate(text) == nil)
    }

    @Test func `options are resolved, and bytes without numbers get their checksum`() throws {
        var template = try #require(WriteTemplate("AA {pin:u16le}", options: ["pin"]))
        template.checksum = Checksum(.sum8)
        #expect(template.description == "aa {pin:u16le} and a checksum")
        #expect(WriteTemplate("AA {year-2000:u8}{now+5:u32be}")?.description == "aa {year-2000:u8} {now+5:u32be}")
        #expect(template.resolved { $0 == "pin" ? 0x0201 : nil } == [0xAA, 1, 2, 0xAD])
        #expect(template.resolved { _ in 0x10000 } == template)
    }

    @Test(
        arguments: [
            (0, 0, [1970, 1, 1, 0, 0, 0, 4]), (951_782_399, 0, [2000, 2, 28, 23, 59, 59, 1]),
            (951_782_399, 1, [2000, 2, 29, 0, 0, 0, 2]), (951_868_800, 0, [2000, 3, 1, 0, 0, 0, 3]),
            (4_107_542_399, 0, [2100, 2, 28, 23, 59, 59, 7]), (4_107_542_400, 0, [2100, 3, 1, 0, 0, 0, 1]),
            (-5, -3600, [1970, 1, 1, 0, 0, 0, 4]), (.max, .max, [9999, 12, 31, 23, 59, 59, 5]),
            (1_735_689_599, 3600, [2025, 1, 1, 0, 59, 59, 3]),
        ] as [(Int64, Int64, [Int64])]
    )
    func `dates and times are those of the calendar`(seconds: Int64, offset: Int64, parts: [Int64]) {
        let time = WriteTime(seconds: seconds, offset: offset)
        let units: [WriteTime.Unit] = [.year, .month, .day, .hour, .minute, .second, .weekday]
        #expect(units.map { time[$0] } == parts)
    }
}
