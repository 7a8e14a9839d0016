import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

extension PayloadDecoder {
    /// Decodes and discards the result.
    func tryDecode(_ payload: [UInt8], characteristic: Int = 0) {
        var samples: [Sample] = []
        try? decode(payload.span, characteristic: characteristic, into: &samples)
    }
}

struct DeclarativeProfileTests {
    private static let text = """
        contract: 1
        profile: lamp
        title: A lamp
        services: [180d, 7a4bbfe6-999f-4717-b63a-066e06971f59]
        characteristics:
          - uuid: 2a6e
            service: 181a
            stream: temperature
            subscribe: {read: {every: 90s}}
            required: true
            notify: socket
            silence: 5m
            fields: [{metric: temperature, type: i16le, scale: 0.01, unit: °C}]
            tests:
              - {hex: C4 09, expect: {temperature: 25}}
              - {hex: C4 09, expect: {temperature: 26}}
              - {hex: C4, expect: {temperature: 26}}
              - {hex: C4 09, expect: {}}
              - {hex: C4 09, reject: true}
              - {hex: C4, reject: outside}
          - uuid: 2a6f
            stream: state
            subscribe: indicate
            read: {every: 5m}
            fields: [{metric: beats, type: u8, kind: counter, repeat: rest}]
        controls:
          - {name: level, uuid: 2a39, type: u8, range: [1, 100], unit: "%", throttle: 100ms, echo: state}
          - {name: any, uuid: 2a39, type: i16be}
          - {name: target, uuid: 2a39, service: 181a, type: i16le, scale: 0.01, offset: 20, range: [-5, 40], response: false}
          - {name: mode, uuid: 2a39, type: u16le, enum: {1: eco, 0x0200: boost}}
          - {name: power, uuid: 2a39, type: bool}
          - {name: reset, uuid: 2a39, trigger: "01 02"}
          - {name: ratio, uuid: 2a39, type: f32le, range: [0, 1]}
          - {name: exact, uuid: 2a39, type: f64be, scale: 2, range: [0, 10]}
        """

    private let profile: any Profile

    init() throws {
        profile = try DeclarativeText.compile(Self.text)
    }

    @Test func `a profile describes its characteristics`() {
        #expect(profile.name == "lamp" && profile.title == "A lamp")
        #expect(profile.services.map(\.description) == ["180d", "7a4bbfe6-999f-4717-b63a-066e06971f59"])
        #expect(
            profile.characteristics == [
                CharacteristicDescriptor(
                    service: 0x181A,
                    uuid: 0x2A6E,
                    stream: "temperature",
                    metrics: [MetricDescriptor(name: "temperature", unit: "°C")],
                    subscription: .poll(every: .seconds(90)),
                    isRequired: true,
                    prefersSocket: true,
                    silence: .seconds(300)
                ),
                CharacteristicDescriptor(
                    uuid: 0x2A6F,
                    stream: "state",
                    metrics: [MetricDescriptor(name: "beats", kind: .counter, isRepeated: true)],
                    subscription: .indicate,
                    isReadAtConnect: true,
                    pollInstead: .seconds(300)
                ),
            ]
        )
    }

    @Test func `a profile describes its controls`() {
        #expect(
            profile.controls.map(\.kind) == [
                .integer(1...100), .integer(-32768...32767), .real(-5...40), .choice(["eco", "boost"]), .boolean,
                .trigger, .real(0...1), .real(0...10),
            ]
        )
        #expect(profile.controls[0].throttle == .milliseconds(100) && profile.controls[0].echo == "state")
        #expect(profile.controls[2].isAcknowledged == false && profile.controls[2].service == 0x181A)
    }

    @Test(
        arguments: [
            (0, ControlValue.integer(100), "64"), (1, .integer(-2), "FF FE"), (2, .real(-5), "3C F6"),
            (2, .real(20.01), "01 00"), (2, .real(20.009), "01 00"), (2, .integer(21), "64 00"),
            (3, .text("boost"), "00 02"), (4, .boolean(true), "01"), (4, .boolean(false), "00"),
            (5, .trigger, "01 02"), (5, .integer(9), "01 02"), (6, .real(0.5), "00 00 00 3F"),
            (7, .real(3), "3F F8 00 00 00 00 00 00"),
        ] as [(Int, ControlValue, String)]
    )
    func `control values are encoded`(control: Int, value: ControlValue, hex: String) throws {
        #expect(try profile.encode(control: control, value: value) == Hexadecimal.octets(hex))
    }

    @Test(
        arguments: [
            (0, ControlValue.integer(0)), (0, .integer(101)), (0, .real(1.5)), (0, .real(.nan)), (1, .integer(40_000)),
            (2, .real(41)), (2, .real(.infinity)), (3, .text("sleep")), (4, .integer(1)), (6, .real(1.1)),
            (9, .trigger),
            (-1, .trigger),
        ] as [(Int, ControlValue)]
    )
    func `invalid control values are refused`(control: Int, value: ControlValue) {
        #expect(throws: ControlError.self) { try profile.encode(control: control, value: value) }
    }

    @Test(arguments: [
        ("\"25\"", #"temperature: expected ["25"], decoded [25.0]"#), ("warm", #"expected ["warm"], decoded [25.0]"#),
        ("true", "expected [true], decoded [25.0]"), ("[1/4, ~]", "expected [1/4, ~], decoded [25.0]"),
    ])
    func `an expected value is printed as a number or as a quoted text`(value: String, told: String) throws {
        let text = DeclarativeText.profile(
            fields: ["{metric: temperature, type: i16, scale: 0.01}"],
            more: "    tests: [{hex: C4 09, expect: {temperature: \(value)}}]"
        )
        let profile = try DeclarativeText.compile(text)
        #expect(ProfileTools.runVectors(of: profile).first?.failure?.hasSuffix(told) == true)
    }

    @Test(
        arguments: [
            ("01 00 00 00 00 00 20 00", "9007199254740993", true),
            ("00 00 00 00 00 00 20 00", "9007199254740993", false),
            ("01 00 00 00 00 00 20 00", "9007199254740992", false), ("E8 03 00 00 00 00 00 00", "1e3", true),
            ("02 00 00 00 00 00 00 00", "4/2", true), ("02 00 00 00 00 00 00 00", "2.5", false),
        ]
    )
    func `an expected integer is compared exactly`(hex: String, value: String, passes: Bool) throws {
        let tests = "    tests: [{hex: \(hex), expect: {n: \(value)}}]"
        let text = DeclarativeText.profile(fields: ["{metric: n, type: u64}"], more: tests)
        let results = ProfileTools.runVectors(of: try DeclarativeText.compile(text))
        #expect(results.map { $0.failure == nil } == [passes])
    }

    @Test func `tests of a profile pass or report the difference`() {
        #expect(
            ProfileTools.runVectors(of: profile).map(\.failure) == [
                nil, "temperature: expected [26], decoded [25.0]",
                "rejected: truncated: a field at offset 0 needs 2 bytes, 1 left", "decoded also temperature 25.0",
                "expected a reject, decoded temperature 25.0",
                "rejected for another reason: truncated: a field at offset 0 needs 2 bytes, 1 left",
            ]
        )
        let lines = ProfileTools.runVectors(of: profile).map { result in
            if case .line(let line, _) = result.place { line } else { 0 }
        }
        #expect(lines == [15, 16, 17, 18, 19, 20])
    }

    @Test func `characteristics are found by stream and by UUID`() {
        #expect(ProfileTools.characteristic("state", of: profile) == 1)
        #expect(ProfileTools.characteristic("0x2A6F", of: profile) == 1)
        #expect(ProfileTools.characteristic("2a70", of: profile) == nil)
    }

    @Test(arguments: [-1, 1, Int.max])
    func `a payload with a metric that its stream does not have is a reject`(stray: Int) throws {
        let metrics = [MetricDescriptor(name: "x")]
        let samples = [0, stray].map { Sample(metric: $0, value: .integer(7)) }
        let reason = "its decoder gave metric \(stray), and the stream has 1"
        #expect(throws: PayloadError.invalid(reason: reason)) { try [NamedSample](samples, of: metrics) }
        let named = try [NamedSample](Array(samples.prefix(1)), of: metrics)
        #expect(named == [NamedSample(metric: metrics[0], value: .integer(7))])
    }

    @Test func `an unknown characteristic is rejected`() {
        for index in [-1, 2, .max] {
            #expect(throws: PayloadError.self) { try decode(characteristic: index) }
        }
    }

    private func decode(characteristic: Int) throws {
        var samples: [Sample] = []
        let payload: [UInt8] = []
        try profile.makeDecoder().decode(payload.span, characteristic: characteristic, into: &samples)
    }
}

/// Connection tasks, controls and their responses.
struct ExchangeTests {
    private static let text = """
        contract: 1
        profile: bike
        services: [1826]
        on_connect:
          - {uuid: 2ad9, write: "00", required: true, answer: {ok: "80 00 01", within: 2s}}
          - {uuid: 2ada, service: 1826, listen: true}
          - uuid: 2ad9
            write: 01 02
            response: false
            resume: {stream: log, metric: number, write: 01 03, type: u16le}
        characteristics:
          - uuid: 2ada
            stream: log
            subscribe: notify
            fields: [{metric: other, type: u8}, {metric: number, type: u16le}]
        controls:
          - name: power
            uuid: 2ad9
            type: i16le
            prefix: "05"
            suffix: FF EE
            answer: {uuid: 2ada, ok: ["80 05 01", 80 05 07], error: {"80 05 02": not supported, "80 05 ??": refused}}
        """

    @Test func `connection tasks keep their order`() throws {
        let ok = ResponseRule.Case(try #require(BytePattern("80 00 01")), .success)
        let answer = ResponseRule(characteristic: 0x2AD9, cases: [ok], timeout: .seconds(2))
        let rule = ResumeRule(stream: "log", metric: 1, prefix: [1, 3], width: 2)
        #expect(
            try DeclarativeText.compile(Self.text).tasks == [
                ConnectionTaskDescriptor(
                    characteristic: 0x2AD9,
                    action: .write([0], isAcknowledged: true, answer: answer),
                    isRequired: true
                ),
                ConnectionTaskDescriptor(service: 0x1826, characteristic: 0x2ADA, action: .listen),
                ConnectionTaskDescriptor(
                    characteristic: 0x2AD9,
                    action: .write([1, 2], isAcknowledged: false, answer: nil),
                    resume: rule
                ),
            ]
        )
    }

    @Test func `a control has a prefix, a suffix and a response rule`() throws {
        let profile = try DeclarativeText.compile(Self.text)
        #expect(try profile.encode(control: 0, value: .integer(-2)) == [0x05, 0xFE, 0xFF, 0xFF, 0xEE])
        let answer = try #require(profile.controls[0].answer)
        #expect(answer.characteristic == 0x2ADA && answer.timeout == .seconds(5))
        #expect(answer.outcome(of: [0x80, 5, 1]) == .success && answer.outcome(of: [0x80, 5, 7, 0]) == .success)
        #expect(answer.outcome(of: [0x80, 5, 2]) == .refusal("not supported"))
        #expect(answer.outcome(of: [0x80, 5, 3]) == .refusal("refused"))
        #expect(answer.outcome(of: [0x80, 6, 1]) == nil)
    }

    @Test(
        arguments: [
            ("{uuid: 2ad9}", "5:5: a task has either 'write' or 'listen: true'"),
            ("{uuid: 2ad9, write: 00, listen: true}", "5:5: a task has either 'write' or 'listen: true'"),
            ("{uuid: 2ad9, writ: 00}", "5:18: a task has no key 'writ'; did you mean 'write'?"),
            ("{uuid: 2ad9, listen: true, answer: {ok: 00}}", "5:32: 'answer' has no meaning here"),
            ("{write: 00}", "5:5: a task needs 'uuid': a UUID such as 180d"),
            ("{uuid: 2ad9, listen: true, resume: {}}", "5:32: 'resume' has no meaning here"),
            ("{uuid: 2ad9, write: 00, resume: {}}", "5:37: 'resume' needs 'write': bytes in hexadecimal"),
            (
                "{uuid: 2ad9, write: 00, resume: {write: 00, type: i8, stream: x, metric: x}}",
                "5:55: 'i8' is invalid; expected one of u8, u16le,"
            ),
            (
                "{uuid: 2ad9, write: 00, resume: {write: 00, type: u8, stream: x, metric: x}}",
                "5:59: the profile has no stream 'x'"
            ),
            ("{uuid: 2ad9, write: 0}", "5:25: '0' is invalid; expected bytes in hexadecimal"),
            (
                "{uuid: 2ad9, write: 00, answer: {}}",
                "5:37: an answer needs 'ok': the first bytes of a response, such as"
            ),
            (
                "{uuid: 2ad9, write: 00, answer: {ok: 8}}",
                "5:42: '8' is invalid; expected the first bytes of a response"
            ),
            ("{uuid: 2ad9, write: 00, answer: {ok: 80, error: 81}}", "5:53: 'error' is a mapping of answers"),
            ("{uuid: 2ad9, write: 00, answer: {ok: 80, within: 1h}}", "5:54: '1h' is invalid; expected a duration"),
        ]
    )
    func `errors in tasks and response rules have a position`(task: String, error: String) throws {
        let text = """
            contract: 1
            profile: bike
            services: [1826]
            on_connect:
              - \(task)
            controls:
              - {name: power, uuid: 2ad9, type: u8}
            """
        let errors = try DeclarativeText.errors(text)
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }
}
