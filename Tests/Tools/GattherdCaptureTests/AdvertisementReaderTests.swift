import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdCapture

/// Advertisements in traces, in the text of other programs and in lines of digits.
struct AdvertisementReaderTests {
    private static let address = BluetoothAddress(value: 0xC0FF_EE00_0001)
    private static let structures: [UInt8] = [2, 1, 6, 5, 0xFF, 0x99, 0x04, 5, 7]

    /// An event with a legacy report.
    private static func event(_ structures: [UInt8], type: UInt8 = 0) -> [UInt8] {
        let report = [type, 1, 1, 0, 0, 0xEE, 0xFF, 0xC0, UInt8(structures.count)] + structures + [0xC4]
        return [0x3E, UInt8(report.count + 2), 0x02, 1] + report
    }

    /// An event with an extended report; `status` is 1 if more follows.
    private static func extended(_ structures: [UInt8], status: UInt8 = 0) -> [UInt8] {
        let head: [UInt8] = [status << 5, 0, 1, 1, 0, 0, 0xEE, 0xFF, 0xC0, 1, 0, 0xFF, 127, 0xC4]
        let report = head + [UInt8](repeating: 0, count: 9) + [UInt8(structures.count)] + structures
        return [0x3E, UInt8(report.count + 2), 0x0D, 1] + report
    }

    private func read(_ text: String) throws -> [CapturedAdvertisement] {
        var reader = AdvertisementTextReader(file: "air.txt")
        var found: [CapturedAdvertisement] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            found += try reader.read(line.utf8, index + 1)
        }
        return try found + reader.finish()
    }

    // MARK: - Events

    @Test func `senders that never finish make room, and the rest of a dropped advertisement is dropped`() {
        var reports = AdvertisingReports()
        let senders = (0..<100).map { BluetoothAddress(value: UInt64($0)) }
        for sender in senders { #expect(reports.complete([1], of: sender, isLast: false) == nil) }
        let last = senders[99]
        #expect(reports.complete([2], of: last, isLast: true) == [1, 2])
        #expect(reports.complete([2], of: senders[0], isLast: true) == nil)
        #expect(reports.complete([3], of: senders[0], isLast: true) == [3])
        #expect(reports.complete([UInt8](repeating: 0, count: 2000), of: last, isLast: false) == nil)
        #expect(reports.complete([4], of: last, isLast: true) == nil)
    }

    @Test func `reports of both kinds have sender, strength and structures`() throws {
        for event in [Self.event(Self.structures), Self.extended(Self.structures)] {
            var reports = AdvertisingReports()
            let found = try reports.advertisements(in: event, at: nil)
            #expect(found == [CapturedAdvertisement(address: Self.address, rssi: -60, octets: Self.structures)])
        }
    }

    @Test func `an advertisement in several extended reports is joined`() throws {
        var reports = AdvertisingReports()
        let first = try reports.advertisements(in: Self.extended([2, 1], status: 1), at: nil)
        #expect(first == [])
        let last = try reports.advertisements(in: Self.extended([6]), at: nil)
        #expect(last.map(\.octets) == [[2, 1, 6]])
    }

    @Test func `unfinished advertisements take a bounded amount of memory`() throws {
        var reports = AdvertisingReports()
        let part = [UInt8](repeating: 0, count: 229)
        for _ in 0..<100 { _ = try reports.advertisements(in: Self.extended(part, status: 1), at: nil) }
        let whole = try reports.advertisements(in: Self.extended(part), at: nil)
        #expect(whole.map(\.octets.count).allSatisfy { $0 <= 1650 + 229 })
    }

    @Test func `an event that is cut anywhere is an error and not a crash`() {
        for event in [Self.event(Self.structures), Self.extended(Self.structures)] {
            for length in 0..<event.count {
                var reports = AdvertisingReports()
                #expect(throws: PayloadError.self) { try reports.advertisements(in: Array(event[..<length]), at: nil) }
            }
        }
    }

    @Test func `a report with a wrong length is an error`() {
        var event = Self.event(Self.structures)
        event[12] = 200
        var reports = AdvertisingReports()
        #expect(throws: PayloadError.self) { try reports.advertisements(in: event, at: nil) }
    }

    // MARK: - Lines of digits

    @Test(arguments: [
        "0201060 5FF9904 0507", "02:01:06:05:FF:99:04:05:07", "0x02010605FF99040507",
        "  02 01 06 05 ff 99 04 05 07   # a comment", "0x02 0x01 0x06 0x05 0xff 0x99 0X04 0x05 0x07",
        "0x02, 0x01, 0x06, 0x05, 0xFF, 0x99, 0x04, 0x05, 0x07,",
    ])
    func `a line of digits is an advertisement`(text: String) throws {
        #expect(try read(text) == [CapturedAdvertisement(octets: Self.structures)])
    }

    @Test func `a time and an address may come before the digits`() throws {
        let found = try read("# air\n\n2026-09-21T14:13:20.5Z C0:FF:EE:00:00:01 02010605FF99040507\r\n")
        let time = Timestamp(microseconds: 1_790_000_000_500_000)
        #expect(found == [CapturedAdvertisement(time: time, address: Self.address, octets: Self.structures)])
    }

    @Test(arguments: ["C0:FF:EE:00:00:01", "c0-ff-ee-00-00-01", "c0:ff:ee:00:00:01"])
    func `an address may be written with either separator`(word: String) throws {
        let found = try read("\(word) 0x02010605FF99040507")
        #expect(found == [CapturedAdvertisement(address: Self.address, octets: Self.structures)])
    }

    @Test(
        arguments: [
            ("02 01 06, 05 FF 99 04 05 07", [[2, 1, 6], [5, 0xFF, 0x99, 4, 5, 7]]),
            ("0x02, 0x01, 0x06", [[2, 1, 6]]), ("{0x2, 0x1, 0x06};", [[2, 1, 6]]), (#"\x02\x01\x06"#, [[2, 1, 6]]),
            ("> 04 3E 0F 02 01 00 01 01 00 00 EE FF C0 03 02 01 06 C4", [[2, 1, 6]]),
            ("", []), (" , ", []),
        ] as [(String, [[UInt8]])]
    )
    func `an argument has advertisements with commas between them`(text: String, octets: [[UInt8]]) throws {
        let found = try AdvertisementTextReader.advertisements(inArgument: text, of: "--advertisement")
        #expect(found.map(\.octets) == octets)
    }

    @Test func `an HCI event in digits is recognised`() throws {
        let digits = Hexadecimal.text(([0x04] + Self.event(Self.structures)).span)
        #expect(try read(digits) == [CapturedAdvertisement(address: Self.address, rssi: -60, octets: Self.structures)])
    }

    @Test func `packets of hcidump may span lines`() throws {
        let dump = """
            HCI sniffer - Bluetooth packet analyzer ver 5.66
            device: hci0 snap_len: 1500 filter: 0xffffffff
            < 01 0C 20 02 01 00
            > 04 0E 04 01 0C 20 00
            > 04 3E 15 02 01 00 01 01 00 00 EE FF C0 09 02 01 06 05 FF
              99 04 05 07 C4
            > 04 3E 15 02 01 00 01 01 00 00 EE FF C0 09 02 01 06 05 FF
              99 04 05 07 C4
            """
        let found = try read(dump)
        #expect(found.map(\.octets) == [Self.structures, Self.structures])
    }

    @Test func `packets of hcidump may have times`() throws {
        let dump = """
            HCI sniffer - Bluetooth packet analyzer ver 5.66
            btsnoop version: 1 datalink type: 1002
            2026-09-21 14:13:20.400000 < 01 0C 20 02 01 00
            2026-09-21 14:13:20.500000 > 04 3E 15 02 01 00 01 01 00 00 EE FF C0 09 02 01 06 05 FF
              99 04 05 07 C4
            """
        let time = Timestamp(microseconds: 1_790_000_000_500_000)
        let expected = CapturedAdvertisement(time: time, address: Self.address, rssi: -60, octets: Self.structures)
        #expect(try read(dump) == [expected])
    }

    @Test(arguments: ["", "2026-09-21 14:13:20.500000 "])
    func `the text of hcidump without bytes is an error`(time: String) {
        let text = """
            HCI sniffer - Bluetooth packet analyzer ver 5.66
            device: hci0 snap_len: 1500 filter: 0xffffffff
            \(time)> HCI Event: LE Meta Event (0x3e) plen 24
            """
        let error = #expect(throws: CaptureError.self) { try read(text) }
        let problem = "the bytes of the packets are missing; print them: hcidump -R"
        #expect(error?.description == "air.txt:3: error: \(problem)")
    }

    @Test(arguments: ["\u{0}\u{1}\u{2}", "\u{FFFD}PNG"])
    func `a file that is no text is an error`(text: String) {
        let error = #expect(throws: CaptureError.self) { try read(text) }
        let problem = "this is neither text nor a btsnoop trace; write one: btmon -w FILE"
        #expect(error?.description == "air.txt:1: error: \(problem)")
    }

    @Test(arguments: [
        ("02010", "air.txt:1: error: '02010' is no advertisement; expected hexadecimal digits, such as 02 01 06 03"),
        ("\n043E", "air.txt:2: error: the HCI event is not complete"),
        ("C0:FF:EE:00:00:01 xyz", "air.txt:1: error: 'xyz' is no advertisement"),
    ])
    func `an invalid line is reported with its number`(text: String, message: String) {
        let error = #expect(throws: CaptureError.self) { try read(text) }
        #expect(error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
    }

    // MARK: - Traces

    private static func trace(_ link: UInt8, flags: UInt8, _ packets: [[UInt8]]) -> [[UInt8]] {
        let header = SnoopReader.magic + [0, 0, 0, 1, 0, 0, link == 0xD1 ? 7 : 3, link]
        let time: [UInt8] = [0x00, 0xE3, 0x3C, 0xD9, 0x0A, 0xA6, 0xA0, 0x00]
        let records = packets.flatMap { packet -> [[UInt8]] in
            let size: [UInt8] = [0, 0, 0, UInt8(packet.count)]
            return [size + size + [0, 0, 0, flags] + [0, 0, 0, 0] + time, packet]
        }
        return [header] + records
    }

    @Test(arguments: [(UInt8(0xE9), false), (0xEA, true), (0xD1, false)])
    func `traces of all three kinds are read`(link: UInt8, hasType: Bool) throws {
        let packet = (hasType ? [0x04] : []) + Self.event(Self.structures)
        let parts = Self.trace(link, flags: 3, [packet])
        var reader = try SnoopReader(parts[0], file: "air.btsnoop")
        #expect(try reader.size(of: parts[1]) == packet.count)
        let found = try reader.advertisements(parts[1], parts[2])
        #expect(found.map(\.octets) == [Self.structures])
        #expect(found.first?.time?.rfc3339.hasPrefix("20") == true)
    }

    @Test func `commands in a trace are skipped`() throws {
        let parts = Self.trace(0xD1, flags: 2, [Self.event(Self.structures)])
        var reader = try SnoopReader(parts[0], file: "air.btsnoop")
        #expect(try reader.advertisements(parts[1], parts[2]) == [])
    }

    @Test func `a damaged trace is an error`() throws {
        let parts = Self.trace(0xD1, flags: 3, [Self.event(Self.structures)])
        #expect(throws: CaptureError.self) { try SnoopReader(Array(parts[0].dropLast()), file: "f") }
        #expect(throws: CaptureError.self) { try SnoopReader(parts[0].dropLast() + [9], file: "f") }
        var reader = try SnoopReader(parts[0], file: "f")
        #expect(throws: CaptureError.self) { try reader.size(of: Array(parts[1].dropLast())) }
        let huge = Array(parts[1][..<4]) + [0xFF, 0xFF, 0xFF, 0xFF] + Array(parts[1][8...])
        let error = #expect(throws: CaptureError.self) { try reader.size(of: huge) }
        let problem = "packet 2 of the trace has 4294967295 bytes; a packet has at most 64 KiB"
        #expect(error?.description == "f: error: \(problem)")
        #expect(throws: CaptureError.self) { try reader.advertisements(parts[1], Array(parts[2].dropLast())) }
    }

    // MARK: - Captures

    @Test func `a written advertisement is read back unchanged`() throws {
        let time = Timestamp(microseconds: 1_790_000_000_123_456)
        let whole = CapturedAdvertisement(time: time, address: Self.address, rssi: -67, octets: Self.structures)
        for advertisement in [whole, CapturedAdvertisement(octets: [])] {
            let line = CaptureLine.advertisement(advertisement).json
            #expect(try CaptureLine(line.dropLast(), 1, file: "f") == .advertisement(advertisement))
        }
        #expect(try CaptureLine(CaptureLine.advertisements.json.dropLast(), 1, file: "f") == .advertisements)
        #expect(
            String(decoding: CaptureLine.advertisement(whole).json, as: UTF8.self)
                == #"{"ts":"2026-09-21T14:13:20.123456Z","address":"C0:FF:EE:00:00:01","rssi":-67,"#
                + #""source":"advert","hex":"02010605ff99040507"}"# + "\n"
        )
    }
}
