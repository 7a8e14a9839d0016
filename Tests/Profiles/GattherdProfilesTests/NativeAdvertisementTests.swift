import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// A profile of advertisements written in C, loaded and used.
struct NativeAdvertisementTests {
    private static let address = BluetoothAddress("C0:FF:EE:00:00:00")
    private let profile: any Profile

    init() async throws {
        let folder = try TemporaryFolder()
        let registry = try ProfileRegistry.load(paths: [try await CPlugin.build(in: folder, "LISTENS")])
        profile = try #require(registry.profiles.first, "\(registry.refusals)")
    }

    private func sender(_ key: [UInt8]? = nil, remark: String = "") throws -> Sender {
        Sender(address: try #require(Self.address), key: key.flatMap { BindKey($0, remark: remark) })
    }

    private func decode(_ payload: [UInt8], _ decoder: any PayloadDecoder) throws -> [SampleValue] {
        var samples: [Sample] = []
        try decoder.decode(payload.span, characteristic: 0, into: &samples)
        return samples.map(\.value)
    }

    @Test func `the whole table is read`() throws {
        var frame = AdvertisementDescriptor(
            source: .manufacturer(0xFFFF),
            stream: "garden",
            metrics: [MetricDescriptor(name: "temperature", unit: "°C")]
        )
        frame.names = [NamePattern("Garden*")]
        frame.beginning = BytePattern("A5 ??")
        frame.length = 4...4
        frame.silence = .seconds(30)
        frame.isCounted = true
        #expect(profile.advertisements == [frame])
        #expect(profile.isForAdvertisements && profile.isOptIn)
        #expect(profile.services == [] && profile.characteristics == [] && profile.tasks == [])
        #expect(profile.frame([0xA5, 0, 0, 0], from: .manufacturer(0xFFFF), name: "Garden 1")?.index == 0)
        #expect(profile.frame([0xA5, 0, 0, 0], from: .manufacturer(0xFFFF), name: "Kitchen")?.index == nil)
        #expect(ProfileTools.runVectors(of: profile).map(\.failure) == [nil])
    }

    @Test func `the decoder gets the address and the key of the sender`() throws {
        let key = [UInt8](repeating: 5, count: 16)
        let other = Sender(address: try #require(BluetoothAddress("C0:FF:EE:00:00:09")))
        #expect(try decode([0xA5, 0, 25, 1], profile.makeDecoder()) == [.integer(25)])
        #expect(try decode([0xA5, 0, 25, 1], profile.makeDecoder(for: other)) == [.integer(34)])
        #expect(try decode([0xA5, 0, 25, 1], profile.makeDecoder(for: sender(key))) == [.integer(30)])
    }

    @Test func `a sender with a key of 12 bytes has none for a native profile`() throws {
        let decoder = profile.makeDecoder(for: try sender([UInt8](repeating: 5, count: 12)))
        #expect(try decode([0xA5, 0, 25, 7], decoder) == [.integer(25)])
        #expect(try decode([0xA5, 0, 26, 6], decoder) == [.integer(26)])
        #expect(decoder.replayMarks == [])
    }

    @Test func `a payload with the number of the one before is the same reading`() throws {
        let decoder = profile.makeDecoder(for: try sender())
        #expect(try decode([0xA5, 0, 25, 7], decoder) == [.integer(25)])
        #expect(try decode([0xA5, 0, 26, 7], decoder) == [])
        #expect(try decode([0xA5, 0, 27, 8], decoder) == [.integer(27)])
        // Without a key, a lower number may be a restart of the device.
        #expect(try decode([0xA5, 0, 28, 1], decoder) == [.integer(28)])
        #expect(decoder.replayMarks == [])
    }

    @Test func `the bytes with which a frame begins decide whether there are values`() {
        let dependence = SampleDependence([[0xA5, 0, 25, 7]], stream: 0, of: profile)
        #expect(dependence.deciding == [0])
        #expect(dependence.rows.map(\.bytes) == [[2]])
        #expect(dependence.unused == [1, 3])
    }

    @Test func `a repeated advertisement leaves the earlier samples in the array`() throws {
        let decoder = profile.makeDecoder(for: try sender())
        let before = Sample(metric: 7, value: .null)
        var samples = [before]
        try decoder.decode([0xA5, 0, 25, 7].span, characteristic: 0, into: &samples)
        try decoder.decode([0xA5, 0, 25, 7].span, characteristic: 0, into: &samples)
        #expect(samples == [before, Sample(metric: 0, value: .integer(25))])
    }

    @Test func `lower numbers of a sender with a key are replays, also after a restart`() throws {
        let keyed = try sender([UInt8](repeating: 0, count: 16))
        let decoder = profile.makeDecoder(for: keyed)
        #expect(try decode([0xA5, 0, 25, 7], decoder) == [.integer(25)])
        #expect(throws: PayloadError.self) { try decode([0xA5, 0, 25, 6], decoder) }
        let marks = decoder.replayMarks
        #expect(marks.map(\.counter) == [7])

        let next = profile.makeDecoder(for: keyed)
        next.resume(from: Dictionary(uniqueKeysWithValues: marks.map { ($0.sender, $0.counter) }))
        let error = #expect(throws: PayloadError.self) { try decode([0xA5, 0, 25, 6], next) }
        #expect(error?.description.hasPrefix("it is a replay: its counter 6 is below 7") == true)
        #expect(try decode([0xA5, 0, 25, 8], next) == [.integer(25)])
    }

    @Test func `a reject has the profile's reason`() throws {
        let error = #expect(throws: PayloadError.self) { try decode([0xA5], profile.makeDecoder()) }
        #expect(error == .invalid(reason: "too short"))
        #expect(throws: PayloadError.self) { try ProfileTools.decode([], characteristic: 0, of: profile) }
    }
}
