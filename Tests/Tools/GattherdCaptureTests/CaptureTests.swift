import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdCapture

struct CaptureTests {
    private static let header = CaptureHeader(
        address: BluetoothAddress(value: 0xC0FF_EE00_0001),
        name: "A \"strap\"\n\u{1F493}",
        services: [
            CaptureHeader.Service(
                0x180D,
                [
                    CaptureHeader.Characteristic(0x2A37, properties: ["notify"]),
                    CaptureHeader.Characteristic(
                        BluetoothUUID(high: 0x7a4b_0001_999f_4717, low: 0xb63a_066e_0697_1f59),
                        properties: ["read", "write-without-response"]
                    ),
                ]
            )
        ]
    )

    private static func value(_ octets: [UInt8], _ source: ReadingSource = .notify) -> CaptureValue {
        CaptureValue(
            time: Timestamp(microseconds: 1_790_000_000_123_456),
            service: 0x180D,
            characteristic: 0x2A37,
            source: source,
            octets: octets
        )
    }

    private func capture(_ text: String) throws -> Capture { try Capture(Array(text.utf8), file: "c.jsonl") }

    @Test func `a written capture is read back unchanged`() throws {
        let values = [Self.value([0x16, 0x48]), Self.value([], .indicate), Self.value([0xFF], .read)]
        let lines = CaptureLine.header(Self.header).json + values.flatMap { CaptureLine.value($0).json }
        let capture = try Capture(lines, file: "c.jsonl")
        #expect(capture.header == Self.header)
        #expect(capture.values == values)
    }

    @Test func `each value is one JSON line with fixed members`() {
        #expect(
            String(decoding: CaptureLine.value(Self.value([0x16, 0x48])).json, as: UTF8.self)
                == #"{"ts":"2026-09-21T14:13:20.123456Z","service":"180d","characteristic":"2a37","#
                + #""source":"notify","hex":"1648"}"# + "\n"
        )
    }

    @Test func `unknown members of a later version are ignored`() throws {
        let text = #"{"capture":1,"address":"C0:FF:EE:00:00:01","services":[],"mood":{"good":[1]}}"#
        #expect(try capture(text).header.name == nil)
    }

    @Test(arguments: [
        (#"{"capture":2}"#, "c.jsonl:1: error: unsupported capture version; this gattherd reads version 1"),
        (#"{"capture":1,"address":"x"}"#, "c.jsonl:1: error: \"address\" is 'x'; expected a Bluetooth address"),
        (#"{"ts":"now"}"#, "c.jsonl:1: error: \"ts\" is 'now'; expected a time such as 2026-11-21T03:20:05.123456Z"),
        ("{}", "c.jsonl:1: error: \"ts\" is missing: a time such as 2026-11-21T03:20:05.123456Z"),
        ("[]", "c.jsonl:1: error: not a JSON object"),
        ("\n\n", "c.jsonl:3: error: the header line with the peripheral is missing"),
        (
            #"{"capture":1,"address":"C0:FF:EE:00:00:01","services":[{"characteristics":[]}]}"#,
            "c.jsonl:1: error: a service or characteristic has no \"uuid\""
        ),
    ])
    func `an invalid line is reported with its number`(text: String, message: String) {
        let error = #expect(throws: CaptureError.self) { try capture(text) }
        #expect(error?.description == message)
    }

    @Test func `a truncated last line is reported`() {
        let line = CaptureLine.value(Self.value([0x16, 0x48])).json
        for length in 1..<line.count - 1 {
            #expect(throws: CaptureError.self) { try CaptureLine(line[..<length], 7, file: "c.jsonl") }
        }
    }

    @Test func `a track has the pauses between its values and ends with their mean`() throws {
        let times: [Int64] = [0, 1_000_000, 3_000_000]
        var lines = CaptureLine.header(Self.header).json + CaptureLine.value(Self.value([9], .read)).json
        for (index, time) in times.enumerated() {
            var value = Self.value([UInt8(index)])
            value.time = Timestamp(microseconds: time)
            lines += CaptureLine.value(value).json
        }
        let capture = try Capture(lines, file: "c.jsonl")
        let track = capture.track(of: 0x2A37, in: 0x180D)
        #expect(track.stored == [9])
        #expect(track.sent == [[0], [1], [2]])
        #expect(track.pauses == [.seconds(1), .seconds(2), .seconds(1.5)])
        #expect(capture.track(of: 0x2A37, in: 0x180F) == Capture.Track(stored: [], sent: [], pauses: []))
    }
}
