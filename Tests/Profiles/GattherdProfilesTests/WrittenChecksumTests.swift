import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// Checksums of bytes that are written.
struct WrittenChecksumTests {
    private static func profile(_ controls: String...) -> String {
        """
        contract: 1
        profile: thing
        services: [fff0]
        characteristics:
          - {uuid: fff1, stream: thing, subscribe: notify, fields: [{metric: x, type: u8}]}
        controls:
        \(controls.enumerated().map { "  - {uuid: fff2, name: c\($0), \($1)}" }.joined(separator: "\n"))
        """
    }

    private static func written(_ value: ControlValue, _ control: String) throws -> String {
        let octets = try DeclarativeText.compile(profile(control)).encode(control: 0, value: value)
        return Hexadecimal.text(octets.span).uppercased()
    }

    @Test(arguments: ChecksumTests.catalogue)
    func `a checksum of the catalogue is added to the written bytes`(check: String, sum: String) throws {
        let digits = ChecksumTests.digits
        #expect(try Self.written(.trigger, "trigger: \"\(digits)\", check: \(check)") == digits + sum)
        let value = "type: u8, suffix: \(digits.dropFirst(2)), check: \(check)"
        #expect(try Self.written(.integer(0x31), value) == digits + sum)
    }

    @Test(
        arguments: [
            // A request to a JBD battery monitor, as its maker documents it.
            (
                "trigger: DDA5030077, check: {kind: sum16, init: 65535, xor: 65535, bytes: 2..4, at: -3, order: be}",
                ControlValue.trigger, "DDA50300FFFD77"
            ),
            (
                "type: u16be, prefix: 01 06 00 05, check: {kind: crc16, poly: 0x8005, reflect: true}", .integer(500),
                "0106000501F499DC"
            ),
            ("type: u8, prefix: AA, suffix: 55, check: {kind: sum8, bytes: 1, at: 2}", .integer(7), "AA070755"),
            ("type: u8, suffix: 01 02, check: {kind: xor8, bytes: 1.., at: 0}", .integer(4), "07040102"),
            ("type: u8, enum: {1: on, 2: off}, prefix: AA, check: {kind: sum8}", .text("off"), "AA02AC"),
            ("type: bool, prefix: AA, check: {kind: sum8}", .boolean(true), "AA01AB"),
            ("type: f32be, range: [0, 9], check: {kind: crc8}", .real(1), "3F80000070"),
            ("type: u16, scale: 0.1, prefix: 10, check: {kind: crc32}", .real(1), "100A00E8928819"),
        ] as [(String, ControlValue, String)]
    )
    func `a checksum may be anywhere in the written bytes`(control: String, value: ControlValue, hex: String) throws {
        #expect(try Self.written(value, control) == hex)
    }

    @Test func `written bytes pass the same check as received ones`() throws {
        for kind in Checksum.Kind.allCases {
            for first in [0, 1, 2, -7, -kind.width - 1, -kind.width] {
                for isBigEndian in [false, true] {
                    var checksum = Checksum(kind, polynomial: 0x1D, start: 0x5A, inversion: 0x11)
                    let end = first + kind.width
                    checksum.place = ByteSlice(first: first, end: first < 0 && end >= 0 ? nil : end)
                    let before = ByteSlice(first: 0, end: first)
                    checksum.bytes = first == 0 ? ByteSlice(first: kind.width, end: nil) : before
                    checksum.isBigEndian = isBigEndian
                    let octets = try #require(checksum.inserted(into: [1, 2, 3, 4, 5, 6, 7, 8]))
                    try checksum.verify(octets.span)
                    #expect(octets.count == 8 + kind.width)
                }
            }
        }
    }

    @Test func `bytes that are too few for a checksum never trap`() {
        for kind in Checksum.Kind.allCases {
            for (first, end) in [(0, 1), (511, 512), (-512, -511), (-1, nil), (0, nil), (-4, -4)] as [(Int, Int?)] {
                var checksum = Checksum(kind)
                (checksum.place, checksum.bytes) = (ByteSlice(first: first, end: end), ByteSlice(first: -3, end: 2))
                for count in 0..<9 { _ = checksum.inserted(into: Array(repeating: 1, count: count)) }
            }
        }
        #expect(Checksum(.crc32).inserted(into: []) == nil)
    }

    @Test func `requests, tasks and downloads have checksums too`() throws {
        let profile = try DeclarativeText.compile(
            """
            contract: 1
            profile: logger
            services: [fff0]
            on_connect:
              - uuid: fff2
                write: AA 01
                check: {kind: sum8}
                resume: {stream: log, metric: number, write: AA 02, type: u16le}
            records:
              - {stream: log, uuid: fff2, request: "AA 03 {next:u16le} 55", check: {kind: sum8, bytes: 1..-2, at: -2}}
            characteristics:
              - uuid: fff1
                stream: log
                subscribe: notify
                poll: {every: 30s, uuid: fff2, write: [AA 04, AA 05 06], check: {kind: sum8}}
                record: {number: number}
                fields: [{metric: number, type: u16le}]
            """
        )
        let task = try #require(profile.tasks.first)
        #expect(task.action == .write([0xAA, 1, 0xAB], isAcknowledged: true, answer: nil))
        #expect(task.resume?.octets(after: 0x00FF) == [0xAA, 2, 0, 1, 0xAD])
        #expect(profile.characteristics.first?.poll?.requests == [[0xAA, 4, 0xAE], [0xAA, 5, 6, 0xB5]])
        guard case .request(let template, _) = profile.downloads.first?.procedure else {
            Issue.record("the download has no request")
            return
        }
        #expect(template.octets { _ in 0x0107 } == [0xAA, 3, 7, 1, 11, 0x55])
        #expect(template.octets { _ in 0x10000 } == nil)
    }

    @Test(
        arguments: [
            ("trigger: AA, check: {kind: sum8, at: 2}", "'at' is outside the 2 written bytes, which include"),
            ("type: u8, check: {kind: sum8, bytes: 0..9}", "'bytes' goes beyond the 2 written bytes"),
            ("type: u8, check: {kind: sum8, bytes: 0..}", "a written checksum cannot cover its own bytes"),
            ("trigger: AA, check: {kind: sum16, bytes: 1..-2}", "the checksum covers none of the 3 written bytes"),
            ("type: u8, check: {kind: sum8, order: big}", "'big' is invalid; expected one of le, be"),
            ("type: u8, check: {kind: sum}", "'sum' is invalid; expected one of sum8"),
        ]
    )
    func `a checksum that does not fit is reported with its position`(control: String, error: String) throws {
        let errors = try DeclarativeText.errors(Self.profile(control))
        #expect(errors.count == 1 && errors[0].hasPrefix("7:") && errors[0].contains(error), "\(errors)")
    }

    @Test(
        arguments: [
            ("on_connect: [{uuid: fff2, listen: true, check: {kind: sum8}}]", "'check' is for bytes that are written"),
            (
                "on_connect: [{uuid: fff2, write: AA, check: {kind: sum8, at: 4}}]",
                "'at' is outside the 2 written bytes"
            ),
            ("records: [{stream: x, racp: 2a52, check: {kind: sum8}}]", "'check' is for 'request' and 'block'"),
            (
                "records: [{stream: x, uuid: fff2, request: AA, check: {kind: sum8, at: 9}}]",
                "'at' is outside the 2 written bytes"
            ),
        ]
    )
    func `a checksum without written bytes is reported`(line: String, error: String) throws {
        let text = DeclarativeText.profile(fields: ["{metric: x, type: u8}"], more: "    record: {number: x}\n" + line)
        let errors = try DeclarativeText.errors(text.replacing("stream: thing", with: "stream: x"))
        #expect(errors.count == 1 && errors[0].contains(error), "\(errors)")
    }
}

/// Tests of controls.
struct ControlVectorTests {
    private static func profile(_ tests: String) -> String {
        """
        contract: 1
        profile: lamp
        services: [fff0]
        controls:
          - name: interval
            uuid: fff2
            prefix: "01"
            type: u16le
            range: [1, 3600]
            check: {kind: sum8}
            tests:
              - \(tests)
          - {name: identify, uuid: fff2, trigger: 07, tests: [{hex: 07}]}
          - {name: mode, uuid: fff2, type: u8, enum: {1: on, 2: off}, tests: [{set: off, hex: 02}, {set: 2, reject: o}]}
          - {name: level, uuid: fff2, type: u8, scale: 0.5, tests: [{set: 1.5, hex: 03}, {set: warm, reject: true}]}
          - {name: lock, uuid: fff2, type: bool, tests: [{set: true, hex: "01"}, {set: 1, reject: true or false}]}
        """
    }

    @Test(
        arguments: [
            ("{set: 60, hex: 01 3C 00 3D}", nil),
            ("{set: 60, hex: 01 3C 00}", "expected 013c00, written 013c003d"),
            ("{set: 3601, reject: an integer from 1 to 3600}", nil),
            ("{set: 0, hex: 01 00 00 01}", "refused: '0' is invalid; expected an integer from 1 to 3600"),
            ("{set: 60, reject: true}", "expected a refusal, written 013c003d"),
            ("{set: fast, reject: busy}", "refused for another reason: 'fast' is invalid"),
        ] as [(String, String?)]
    )
    func `tests of a control pass or report the difference`(test: String, failure: String?) throws {
        let profile = try DeclarativeText.compile(Self.profile(test))
        let results = ProfileTools.runControlVectors(of: profile)
        #expect(results.count == 8 && results.dropFirst().allSatisfy { $0.failure == nil })
        let first = try #require(results.first)
        #expect(first.control == "interval" && first.place == .line(12, column: 9))
        #expect(failure.map { first.failure?.hasPrefix($0) == true } ?? (first.failure == nil), "\(first)")
    }

    @Test(
        arguments: [
            ("{set: 60}", "12:9: a test of a control has either 'hex', the written bytes, or 'reject'"),
            ("{set: 60, hex: 01, reject: true}", "12:9: a test of a control has either 'hex'"),
            ("{set: 60, hex: 0}", "12:24: '0' is invalid; expected bytes in hexadecimal"),
            ("{set: 60, expect: 01}", "12:19: a test of a control has no key 'expect'"),
        ]
    )
    func `errors in tests of controls have a position`(test: String, error: String) throws {
        let errors = try DeclarativeText.errors(Self.profile(test))
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }
}

/// Times and options in bytes that are written.
struct WrittenNumberTests {
    private static let text = """
        contract: 1
        profile: plug
        services: [fff0]
        options: {pin: {default: 0, range: [0, 9999]}}
        on_connect:
          - {uuid: fff3, write: "17 {pin:u16be}", check: {kind: sum8}}
          - {uuid: fff3, write: "01 {year-2000:u8} {month:u8} {day:u8} {hour:u8}{minute:u8}{second:u8}"}
        records:
          - {stream: plug, uuid: fff3, request: "02 {pin:u16le} {next:u16le}"}
        characteristics:
          - uuid: fff4
            stream: plug
            subscribe: notify
            record: {number: n}
            poll: {every: 30s, uuid: fff3, write: ["04 {pin+1:u16be}", "05 {now:u32le}"]}
            fields: [{metric: n, type: u16le}]
        """

    private static func hex(_ template: WriteTemplate?, _ variables: [WriteTemplate.Variable: Int64] = [:]) -> String? {
        template?.octets { variables[$0] }.map { Hexadecimal.text($0.span) }
    }

    private static func template(of task: ConnectionTaskDescriptor?) -> WriteTemplate? {
        if case .write(let template, _, _) = task?.action { template } else { nil }
    }

    @Test(
        arguments: [
            ([:], "17000017", "040001"), (["pin": 1234], "1704d2ed", "0404d3"),
            (["pin": 70_000], "17270f4d", "042710"),
        ]
    )
    func `options are written with the value of the device`(
        settings: [String: Int64],
        login: String,
        poll: String
    ) throws {
        let profile = try DeclarativeText.compile(Self.text).configured(with: settings)
        #expect(Self.hex(Self.template(of: profile.tasks.first)) == login)
        #expect(Self.hex(profile.characteristics[0].poll?.requests.first) == poll)
        guard case .request(let template, _) = profile.downloads.first?.procedure else {
            Issue.record("the download has no request")
            return
        }
        let pin = Int64(min(settings["pin"] ?? 0, 9999))
        let bytes = Hexadecimal.text([2, UInt8(pin & 0xFF), UInt8(pin >> 8), 7, 0].span)
        #expect(Self.hex(template, [.next: 7]) == bytes)
    }

    @Test func `a task or a request without bytes is valid, a download is not`() throws {
        let text = Self.text.replacing("write: \"17 {pin:u16be}\", check: {kind: sum8}", with: "write: \"\"")
        #expect(text != Self.text)
        #expect(Self.hex(Self.template(of: try DeclarativeText.compile(text).tasks.first)) == "")
        let empty = text.replacing("request: \"02 {pin:u16le} {next:u16le}\"", with: "request: \"\"")
        #expect(empty != text)
        #expect(try DeclarativeText.errors(empty).count == 1)
    }

    @Test func `the time is left for the moment of the write`() throws {
        let profile = try DeclarativeText.compile(Self.text)
        let time = WriteTime(seconds: 1_772_326_923, offset: 3600)
        var units: [WriteTemplate.Variable: Int64] = [:]
        for unit in WriteTime.Unit.allCases { units[.time(unit)] = time[unit] }
        #expect(Self.hex(Self.template(of: profile.tasks.last)) == nil)
        #expect(Self.hex(Self.template(of: profile.tasks.last), units) == "011a0301020203")
        #expect(Self.hex(profile.characteristics[0].poll?.requests.last, units) == "050b90a369")
    }

    @Test(
        arguments: [
            ("write: \"17 {pin:u8}\"", "the value 9999 of the option 'pin' does not fit into its bytes"),
            ("write: \"17 {pin-1:u16}\"", "the value 0 of the option 'pin' does not fit into its bytes"),
            ("write: \"17 {code:u8}\"", "expected bytes in hexadecimal and the numbers now, local, year"),
            ("write: \"17 {next:u8}\"", "expected bytes in hexadecimal and the numbers now, local, year"),
            ("write: \"17 {pin:i8}\"", "weekday, pin, such as"),
        ]
    )
    func `errors in numbers have a position`(task: String, error: String) throws {
        let text = Self.text.replacing("write: \"17 {pin:u16be}\"", with: task)
        let errors = try DeclarativeText.errors(text)
        #expect(errors.count == 1 && errors[0].hasPrefix("6:25: ") && errors[0].contains(error), "\(errors)")
    }
}
