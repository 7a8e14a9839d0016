import GattherdGATT
import GattherdModel
import TestKit
import Testing

@testable import GattherdCapture

/// The text of btmon 5.66.
struct MonitorTextTests {
    private func read(_ text: String) throws -> [CapturedAdvertisement] {
        var reader = AdvertisementTextReader(file: "air.txt")
        var found: [CapturedAdvertisement] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            found += try reader.read(line.utf8, index + 1)
        }
        return try found + reader.finish()
    }

    private func untranslated(_ text: String) throws -> Int {
        var reader = AdvertisementTextReader(file: "air.txt")
        for line in text.split(separator: "\n") { _ = try reader.read(line.utf8, 1) }
        _ = try reader.finish()
        return reader.untranslated
    }

    @Test func `the bytes of an advertising report are rebuilt from its text`() throws {
        let found = try read(
            """
            Bluetooth monitor ver 5.66
            @ MGMT Event: Device Found (0x0012) plen 20                     {0x0001} [hci0] 0.000001
                    LE Address: C0:FF:EE:00:00:09 (Static)
                    Data length: 3
                    Flags: 0x06
            > HCI Event: LE Meta Event (0x3e) plen 40                    #2 [hci0] 0.500000
                  LE Advertising Report (0x02)
                    Num reports: 1
                    Event type: Connectable undirected - ADV_IND (0x00)
                    Address type: Random (0x01)
                    Address: C0:FF:EE:00:00:02 (Static)
                    Data length: 28
                    Flags: 0x06
                      LE General Discoverable Mode
                      BR/EDR Not Supported
                    16-bit Service UUIDs (complete): 2 entries
                      Heart Rate (0x180d)
                      Device Information (0x180a)
                    Service Data: Unknown (0xfcd2)
                      Data: 400164020a09
                    Name (complete): Porch: 7
                    RSSI: -70 dBm (0xba)
            """
        )
        let octets = Hexadecimal.octets("020106 05030d180a18 0916d2fc400164020a09 0909506f7263683a2037") ?? []
        let address = BluetoothAddress(value: 0xC0FF_EE00_0002)
        let time = Timestamp(microseconds: 500_000)
        #expect(found == [CapturedAdvertisement(time: time, address: address, rssi: -70, octets: octets)])
    }

    @Test(arguments: [
        "@ RAW Open: btmon (privileged) version 2.22                          {0x0002} 0.1",
        "= Open Index: 00:00:5E:00:53:00                                      [hci0] 0.1",
        "> ACL Data RX: Handle 64 flags 0x02 dlen 11                          #1 [hci0] 0.1",
        "# a comment",
    ])
    func `an excerpt may begin at any packet or note, or with the report`(first: String) throws {
        let found = try read(
            """
            \(first)
                  LE Advertising Report (0x02)
                    Num reports: 1
                    Event type: Connectable undirected - ADV_IND (0x00)
                    Address: C0:FF:EE:00:00:02 (Static)
                    Data length: 3
                    Flags: 0x06
            """
        )
        #expect(found.map(\.octets) == [[2, 1, 6]])
    }

    @Test func `manufacturer data, short names, power and other spellings are made again`() throws {
        let found = try read(
            """
            > HCI Event: LE Meta Event (0x3e) plen 39                    #6 [hci0] 2026-09-21 14:13:20.500000
                  LE Advertising Report (0x02)
                    Num reports: 2
                    Event type: Connectable undirected - ADV_IND (0x00)
                    Address: C0:FF:EE:00:00:05 (Static)
                    Data length: 17
                    Company: not assigned (60552)
                      Data[6]: 0003519e6400
                    Name (short): GVH50
                    TX power: -4 dBm
                    RSSI: -60 dBm (0xc4)
                    Event type: Scan response - SCAN_RSP (0x04)
                    Address: C0:FF:EE:00:00:06 (Static)
                    Data length: 9
                    Service Data (UUID 0xfdf7): 01384a3d
                    Unknown EIR field 0x21: 0001
                    RSSI: invalid (0x7f)
            """
        )
        #expect(
            found.map(\.octets) == [
                Hexadecimal.octets("09ff88ec0003519e6400 06084756483530 020afc"),
                Hexadecimal.octets("0716f7fd01384a3d 03210001"),
            ]
        )
        #expect(found.map(\.rssi) == [-60, nil])
        #expect(found.first?.time?.rfc3339 == "2026-09-21T14:13:20.500000Z")
    }

    private static let beacon = """
        > HCI Event: LE Meta Event (0x3e) plen 56                    #4 [hci0] 1.500000
              LE Extended Advertising Report (0x0d)
                Num reports: 1
                Entry 0
                  Event type: 0x0013
                    Props: 0x0013
                    Data status: \u{1B}[0;32mComplete\u{1B}[0m
                  Address type: Random (0x01)
                  Address: C0:FF:EE:00:00:03 (Static)
                  TX power: 127 dBm
                  RSSI: -60 dBm (0xc4)
                  Direct address: 00:00:00:00:00:00 (OUI 00-00-00)
                  Data length: 0x1e
                02 01 06 1a ff 4c 00 02 15 00 01 02 03 04 05 06  .....L..........
                07 08 09 0a 0b 0c 0d 0e 0f 00 01 00 02 c5        ..............
                Flags: 0x06
                Company: Apple, Inc. (76)
                  Type: iBeacon (2)
                  UUID: 0f0e0d0c-0b0a-0908-0706-050403020100
        """

    @Test func `the printed bytes of an extended report count, not its words`() throws {
        let found = try read(Self.beacon)
        let octets = Hexadecimal.octets("0201061aff4c000215000102030405060708090a0b0c0d0e0f00010002c5")
        #expect(found.map(\.octets) == [octets])
        #expect(found.first?.rssi == -60)
        #expect(try untranslated(Self.beacon) == 0)
    }

    @Test func `parts that are only described are counted`() throws {
        let legacy = """
            > HCI Event: LE Meta Event (0x3e) plen 56                    #4 [hci0] 1.500000
                  LE Advertising Report (0x02)
                    Event type: Connectable undirected - ADV_IND (0x00)
                    Address: C0:FF:EE:00:00:03 (Static)
                    Data length: 30
                    Flags: 0x06
                    Company: Apple, Inc. (76)
                      Type: iBeacon (2)
                    RSSI: -60 dBm (0xc4)
            """
        #expect(try read(legacy).map(\.octets) == [[2, 1, 6]])
        #expect(try untranslated(legacy) == 1)
    }

    @Test func `any text after the heading is read without an error`() throws {
        var generator = SplitMix(state: 7)
        let lines = Self.beacon.split(separator: "\n").map(String.init)
        for _ in 0..<500 {
            let text = (0..<20).map { _ in
                let line = lines[Int(generator.next() % UInt64(lines.count))]
                return String(line.prefix(Int(generator.next() % 80)))
            }
            _ = try read("Bluetooth monitor ver 5.66\n" + text.joined(separator: "\n"))
        }
    }
}
