import FoundationEssentials
import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// Plugins of older versions keep loading, and hostile ones are refused: see `Tests/FrozenPlugins/README.md`.
@Suite(.timeLimit(.minutes(2))) struct FrozenPluginTests {
    private static let frozen = SharedLibrary.root + "/Tests/FrozenPlugins"
    private static let hostile = names(in: "Refused")

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static func names(in part: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: frozen + "/" + part)) ?? []
        return names.filter { $0.hasSuffix(".c") }.sorted()
    }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: URL(filePath: frozen + "/" + path), encoding: .utf8)
    }

    private func registry(_ file: String) async throws -> ProfileRegistry {
        let path = try await SharedLibrary.build(
            try Self.text(file),
            to: "plugin.so",
            in: folder,
            headers: Self.frozen
        )
        return try ProfileRegistry.load(paths: [path])
    }

    private func profile(_ file: String) async throws -> any Profile {
        let registry = try await registry("Loads/" + file)
        #expect(registry.refusals.map(\.description) == [])
        return try #require(registry.profiles.first)
    }

    private func decode(_ payloads: [UInt8]..., by profile: any Profile) throws -> [SampleValue] {
        try ProfileTools.decode(payloads, characteristic: 0, of: profile).map(\.value)
    }

    @Test func `a minimal C profile decodes`() async throws {
        let profile = try await profile("minimal-1.0.c")
        #expect(profile.name == "minimal")
        #expect(!profile.isOptIn)
        #expect(try decode([0x64], by: profile) == [.integer(100)])
        #expect(throws: PayloadError.self) { try decode([], by: profile) }
    }

    @Test func `every member of the C table is read`() async throws {
        let profile = try await profile("stateful-1.0.c")
        let polled = try #require(profile.characteristics.first)
        #expect(polled.subscription == .poll(every: .seconds(60)))
        #expect(polled.silence == .seconds(180))
        #expect(polled.pollInstead == nil)
        #expect(polled.isReadAtConnect && polled.isRequired && polled.prefersSocket)
        #expect(polled.metrics.map(\.kind) == [.counter, .gauge, .state, .state, .event])
        #expect(polled.metrics.map(\.wrapBits) == [nil, nil, nil, nil, nil])
        #expect(
            try decode([1], [3, 4], by: profile) == [.integer(2), .real(3.5), .text("two"), .boolean(true), .null]
        )
        #expect(profile.controls.map(\.name) == ["whole", "real", "boolean", "choice", "trigger"])
        let values: [ControlValue] = [.integer(200), .real(1.5), .boolean(true), .text("on"), .trigger]
        let octets = try values.enumerated().map { try profile.encode(control: $0, value: $1) }
        #expect(octets == [[0, 200], [1, 3], [2, 1], [3, 1], [4, 0]])
    }

    @Test func `wrap bits, the polling fallback and the opt-in flag are read`() async throws {
        let profile = try await profile("counter-1.0.c")
        #expect(profile.isOptIn)
        #expect(profile.characteristics.first?.pollInstead == .seconds(5))
        #expect(profile.characteristics.first?.metrics.first?.wrapBits == 16)
        #expect(try decode([0x34, 0x12], by: profile) == [.integer(0x1234)])
    }

    @Test func `tasks, answers, the point to resume at and tests are read`() async throws {
        let profile = try await profile("tasks-1.0.c")
        var answer = ResponseRule(
            service: 0x1808,
            characteristic: 0x2A52,
            cases: [
                .init(try #require(BytePattern("06 00 ??")), .success),
                .init(try #require(BytePattern("06")), .refusal("refused")),
            ]
        )
        answer.timeout = .seconds(30)
        #expect(profile.controls.map(\.answer) == [answer])
        #expect(
            profile.tasks == [
                ConnectionTaskDescriptor(service: 0x1808, characteristic: 0x2A34, action: .listen),
                ConnectionTaskDescriptor(
                    characteristic: 0x2A53,
                    action: .write([1, 1], isAcknowledged: false, answer: answer),
                    isRequired: true,
                    resume: ResumeRule(stream: "records", metric: 1, prefix: [1, 3], width: 2)
                ),
            ]
        )
        #expect(ProfileTools.runVectors(of: profile).map(\.failure) == [nil, nil])
    }

    @Test func `advertisements are read, and their sender reaches the decoder`() async throws {
        let profile = try await profile("beacon-1.0.c")
        #expect(profile.isForAdvertisements)
        #expect(profile.advertisements.map(\.source) == [.manufacturer(0x0499), .serviceData(0xFCD2)])
        #expect(profile.advertisements.map(\.length) == [2...Int.max, 0...8])
        #expect(profile.advertisements.map(\.names) == [[NamePattern("B*")], []])
        #expect(profile.advertisements.map(\.beginning) == [nil, BytePattern("40")])
        #expect(profile.advertisements.map(\.silence) == [.seconds(300), .seconds(1)])
        #expect(profile.advertisements.map(\.renewal) == [.seconds(60), .seconds(2)])
        #expect(profile.advertisements.map(\.isCounted) == [true, false])
        #expect(profile.advertisements.map(\.isOpen) == [false, true])
        #expect(ProfileTools.runVectors(of: profile).map(\.failure) == [nil, nil, nil])
    }

    @Test func `a Swift profile of advertisements builds, loads and decodes`() async throws {
        let source = Self.frozen + "/Loads/Beacon-1.0.swift"
        let path = try await SharedLibrary.buildSwift([source], to: "beacon.so", in: folder)
        let registry = try ProfileRegistry.load(paths: [path])
        #expect(registry.refusals.map(\.description) == [])
        let profile = try #require(registry.profiles.first)
        let counted = try #require(profile.advertisements.first)
        #expect(counted.source == .manufacturer(0x0499))
        #expect(counted.names == [NamePattern("B*")] && counted.beginning == BytePattern("?? 0F"))
        #expect(counted.length == 3...9 && counted.isCounted && !counted.isOpen)
        #expect(counted.silence == .seconds(10) && counted.renewal == .seconds(20))
        #expect(profile.advertisements.map(\.source).last == .serviceData(0xFCD2))
        #expect(ProfileTools.runVectors(of: profile).map(\.failure) == [nil, nil, nil, nil])
    }

    @Test func `additional members of a later minor version are ignored`() async throws {
        let profile = try await profile("future.c")
        let stream = try #require(profile.characteristics.first)
        #expect(
            stream
                == CharacteristicDescriptor(
                    uuid: 0x2A6E,
                    stream: "size",
                    metrics: [MetricDescriptor(name: "size")],
                    subscription: .notify
                )
        )
        #expect(profile.controls.map(\.name) == ["go"])
        #expect(try decode([1, 2, 3], by: profile) == [.integer(3)])
        #expect(try profile.encode(control: 0, value: .trigger) == [1])
    }

    @Test func `a Swift profile written for ABI 1.0 builds, loads and decodes`() async throws {
        let source = Self.frozen + "/Loads/Thermometer-1.0.swift"
        let path = try await SharedLibrary.buildSwift([source], to: "thermometer.so", in: folder)
        let registry = try ProfileRegistry.load(paths: [path])
        #expect(registry.refusals.map(\.description) == [])
        let profile = try #require(registry.profiles.first)
        #expect(try decode([0xC4, 0x09], [0xC4, 0x09], by: profile) == [.real(25), .integer(2)])
        let error = #expect(throws: PayloadError.self) { try decode([0xC4], by: profile) }
        #expect(error?.description == "truncated: a field at offset 0 needs 2 bytes, 1 left")
        #expect(try profile.encode(control: 0, value: .integer(60)) == [60, 0])
        try expectThermometerTasks(of: profile)
        #expect(ProfileTools.runVectors(of: profile).map(\.failure) == [nil, nil])
    }

    private func expectThermometerTasks(of profile: any Profile) throws {
        let success = try ["06 00 01 01", "06 00 01 06"].map { pattern in
            ResponseRule.Case(try #require(BytePattern(pattern)), .success)
        }
        let refusal = ResponseRule.Case(try #require(BytePattern("06 00 01 ??")), .refusal("refused"))
        let answer = ResponseRule(characteristic: 0x2A55, cases: success + [refusal], timeout: .seconds(60))
        #expect(
            profile.tasks == [
                ConnectionTaskDescriptor(service: 0x1808, characteristic: 0x2A52, action: .listen),
                ConnectionTaskDescriptor(
                    service: 0x1808,
                    characteristic: 0x2A52,
                    action: .write([1, 1], isAcknowledged: false, answer: answer),
                    isRequired: true,
                    resume: ResumeRule(stream: "temperature", metric: 1, prefix: [1, 3], width: 2)
                ),
            ]
        )
        let accepted = ResponseRule.Case(try #require(BytePattern("81 00")), .success)
        #expect(
            profile.controls.map(\.answer) == [nil, ResponseRule(characteristic: 0x2A39, cases: [accepted])]
        )
    }

    @Test(arguments: hostile)
    func `a hostile plugin is refused with its reason`(name: String) async throws {
        let wanted = try #require(try Self.text("Refused/" + name).split(separator: "\n").first)
            .dropFirst("/* refused: ".count).dropLast(" */".count)
        let registry = try await registry("Refused/" + name)
        #expect(registry.profiles.isEmpty)
        #expect(registry.refusals.map(\.reason) == [String(wanted)])
        #expect(registry.refusals.first?.remedy?.isEmpty == false)
    }

    @Test func `the hostile plugins are found`() {
        #expect(Self.hostile.count >= 15)
    }
}
