import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// A profile written in C, loaded and used.
struct NativeProfileTests {
    private let folder: TemporaryFolder
    private let profile: any Profile

    init() async throws {
        folder = try TemporaryFolder()
        let registry = try ProfileRegistry.load(paths: [try await CPlugin.build(in: folder)])
        profile = try #require(registry.profiles.first)
    }

    private func decode(_ payload: [UInt8], _ characteristic: Int, _ decoder: any PayloadDecoder) throws -> [Sample] {
        var samples: [Sample] = []
        try decoder.decode(payload.span, characteristic: characteristic, into: &samples)
        return samples
    }

    @Test func `the whole table is read`() throws {
        #expect(profile.title == "A thermometer")
        #expect(profile.services == [0x181A])
        let temperature = MetricDescriptor(name: "temperature", unit: "°C")
        #expect(
            profile.characteristics == [
                CharacteristicDescriptor(
                    uuid: 0x2A6E,
                    stream: "temperature",
                    metrics: [temperature],
                    subscription: .notify,
                    isRequired: true,
                    silence: .seconds(5)
                ),
                CharacteristicDescriptor(
                    service: 0x180F,
                    uuid: BluetoothUUID(high: 0x7a4b_0001_999f_4717, low: 0xb63a_066e_0697_1f59),
                    stream: "anything",
                    metrics: [temperature, MetricDescriptor(name: "list", isRepeated: true)],
                    isReadAtConnect: true
                ),
            ]
        )
        #expect(
            profile.controls == [
                ControlDescriptor(
                    name: "level",
                    kind: .integer(-10...10),
                    characteristic: 0x2A39,
                    unit: "%",
                    throttle: .milliseconds(250),
                    echo: "temperature"
                ),
                ControlDescriptor(
                    name: "mode",
                    kind: .choice(["off", "on"]),
                    characteristic: 0x2A3A,
                    isAcknowledged: false,
                    answer: ResponseRule(characteristic: 0x2A55, cases: try Self.cases())
                ),
            ]
        )
    }

    private static func cases() throws -> [ResponseRule.Case] {
        [
            .init(try #require(BytePattern("06 00 01 ??")), .success),
            .init(try #require(BytePattern("06")), .refusal("no record")),
        ]
    }

    @Test func `connection tasks are read with their answers and the point to resume at`() throws {
        let answer = ResponseRule(
            service: 0x1808,
            characteristic: 0x2A52,
            cases: try Self.cases(),
            timeout: .seconds(60)
        )
        #expect(
            profile.tasks == [
                ConnectionTaskDescriptor(service: 0x1808, characteristic: 0x2A18, action: .listen),
                ConnectionTaskDescriptor(
                    service: 0x1808,
                    characteristic: 0x2A52,
                    action: .write([1, 1], isAcknowledged: true, answer: answer),
                    isRequired: true,
                    resume: ResumeRule(stream: "temperature", metric: 0, prefix: [1], width: 2)
                ),
            ]
        )
    }

    @Test func `the tests of the table are run`() async throws {
        let results = ProfileTools.runVectors(of: profile)
        #expect(results.map(\.place) == [.number(1), .number(2)])
        #expect(results.map(\.stream) == ["temperature", "temperature"])
        #expect(results.map(\.failure) == [nil, nil])
        let path = try await CPlugin.build(
            "wrong.so",
            in: folder,
            "TESTS \"{hex: C4 09, expect: {temperature: 26}}\", \"{hex: C4 09, reject: true}\"",
            "NAME \"wrong\""
        )
        let wrong = try #require(try ProfileRegistry.load(paths: [path]).profiles.first)
        #expect(
            ProfileTools.runVectors(of: wrong).map(\.failure) == [
                "temperature: expected [26], decoded [25.0]", "expected a reject, decoded temperature 25.0",
            ]
        )
    }

    @Test func `the bytes on which a sample depends are found by trials`() throws {
        let dependence = SampleDependence([[0xC4, 0x09, 0x77]], stream: 0, of: profile)
        #expect(dependence.rejection == nil)
        #expect(dependence.rows.map(\.sample.metric.name) == ["temperature"])
        #expect(dependence.rows.map(\.bytes) == [[0, 1]])
        #expect(dependence.deciding == [])
        #expect(dependence.unused == [2])
        // The first byte chooses; with 0, earlier payloads of the decoder count.
        let chosen = SampleDependence([[0], [0]], stream: 1, of: profile)
        #expect(chosen.rows.map(\.sample.value) == [.integer(2)])
        #expect(chosen.deciding == [0] && chosen.unused == [])
        let rejected = SampleDependence([[15]], stream: 1, of: profile)
        #expect(rejected.rejection == .invalid(reason: "the profile rejects it without a reason"))
        #expect(rejected.rows.isEmpty && rejected.deciding == [0])
    }

    @Test func `random bytes are decoded or rejected, and explained`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            let payload = (0..<Int.random(in: 0...6)).map { _ in UInt8.random(in: 11...255, using: &random) }
            for stream in 0...1 {
                let explained = SampleDependence([payload], stream: stream, of: profile)
                let decoded = try? ProfileTools.decode(payload, characteristic: stream, of: profile)
                #expect(explained.rows.map(\.sample) == decoded ?? [])
                #expect((explained.rejection == nil) == (decoded != nil))
            }
        }
    }

    @Test func `decoded samples are appended`() throws {
        var samples = [Sample(metric: 7, value: .null)]
        try profile.makeDecoder().decode([0xC4, 0x09].span, characteristic: 0, into: &samples)
        #expect(samples == [Sample(metric: 7, value: .null), Sample(metric: 0, value: .real(25))])
    }

    @Test func `a reject has the profile's reason and keeps earlier samples`() throws {
        var samples = [Sample(metric: 7, value: .null)]
        let error = #expect(throws: PayloadError.self) {
            try profile.makeDecoder().decode([0xC4].span, characteristic: 0, into: &samples)
        }
        #expect(error == .invalid(reason: "too short"))
        #expect(samples.first == Sample(metric: 7, value: .null))
    }

    @Test func `each decoder has its own state`() throws {
        let (first, second) = (profile.makeDecoder(), profile.makeDecoder())
        #expect(try decode([0], 1, first) == [Sample(metric: 0, value: .integer(1))])
        #expect(try decode([0], 1, first) == [Sample(metric: 0, value: .integer(2))])
        #expect(try decode([0], 1, second) == [Sample(metric: 0, value: .integer(1))])
    }

    @Test func `the decoder is destroyed with its object`() throws {
        for _ in 0..<10 { _ = profile.makeDecoder() }
        let last = profile.makeDecoder()
        #expect(try decode([10], 1, last) == [Sample(metric: 0, value: .integer(1))])
    }

    @Test(
        arguments: [
            (1, "the profile gave metric 9, which it did not declare"),
            (2, "the profile gave more than 4096 samples"),
            (4, "the profile gave a text that is NULL or too long"),
            (5, "the profile gave a text that is NULL or too long"),
            (6, "the profile rejects it, and its reason is not text"),
            (8, "said so"),
            (11, "the profile gave metric 'temperature' twice, but did not declare it as repeated"),
            (200, "the profile rejects it without a reason"),
        ]
    )
    func `violations of the contract reject the payload`(payload: UInt8, reason: String) {
        let error = #expect(throws: PayloadError.self) { try decode([payload], 1, profile.makeDecoder()) }
        #expect(error == .invalid(reason: reason))
    }

    @Test(
        arguments: [(3, SampleValue.text("\u{FFFD}\u{FFFD}")), (7, .null), (9, .boolean(true))]
            as [(UInt8, SampleValue)]
    )
    func `unrepresentable values are converted`(payload: UInt8, value: SampleValue) throws {
        #expect(try decode([payload], 1, profile.makeDecoder()) == [Sample(metric: 0, value: value)])
    }

    @Test func `a repeated metric may have several values`() throws {
        let values = [0, 1].map { Sample(metric: 1, value: .integer($0)) }
        #expect(try decode([12], 1, profile.makeDecoder()) == values)
    }

    @Test func `an unknown characteristic is rejected`() {
        #expect(throws: PayloadError.self) { try decode([], 2, profile.makeDecoder()) }
        #expect(throws: PayloadError.self) { try decode([], -1, profile.makeDecoder()) }
    }

    @Test func `controls are encoded, checked and refused`() throws {
        #expect(try profile.encode(control: 0, value: .integer(-10)) == [0xF6])
        #expect(try profile.encode(control: 0, value: .real(5)) == [5])
        #expect(try profile.encode(control: 1, value: .text("on")) == [1])
        #expect(throws: ControlError.invalidValue("7", expected: "not 7")) {
            try profile.encode(control: 0, value: .integer(7))
        }
        #expect(throws: ControlError.self) { try profile.encode(control: 0, value: .integer(8)) }
        #expect(throws: ControlError.self) { try profile.encode(control: 0, value: .integer(11)) }
        #expect(throws: ControlError.self) { try profile.encode(control: 1, value: .text("maybe")) }
        #expect(throws: ControlError.self) { try profile.encode(control: 2, value: .trigger) }
    }
}
