import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// Profiles of advertisements.
struct AdvertisementTests {
    private static func profile(_ name: String) throws -> any Profile {
        let path = "\(SharedLibrary.root)/Plugins/Standard/\(name).yaml"
        return try #require(try ProfileRegistry.load(paths: [path]).profiles.first)
    }

    /// One frame with these keys, from line 4 on.
    private static func text(_ lines: String..., frames: String = "") -> String {
        """
        contract: 1
        profile: thing
        advertisement:
          - stream: thing
            fields: [{metric: x, type: u8}, {metric: n, type: u8, unknown: 0xFF}]
        \(lines.map { "    " + $0 }.joined(separator: "\n"))
        \(frames)
        """
    }

    private static func decode(
        _ hex: String...,
        by decoder: any PayloadDecoder,
        frame: Int = 0
    ) throws -> [String] {
        try hex.map { hex in
            let octets = try #require(Hexadecimal.octets(hex))
            var samples: [Sample] = []
            do throws(PayloadError) {
                try decoder.decode(octets.span, characteristic: frame, into: &samples)
                return samples.isEmpty ? "nothing" : "\(samples.count)"
            } catch {
                return error.description
            }
        }
    }

    // MARK: - Streams

    @Test func `devices share the metrics of their streams, also with other settings`() throws {
        let text = Self.text("service_data: 181a", frames: "options: {factor: {default: 1, range: [0, 9]}}")
        let profile = try DeclarativeText.compile(text)
        let profiles = [profile, profile.configured(with: ["factor": 2])]
        let streams = zip(profiles, ["one", "two"]).map { $0.stream(ofAdvertisement: 0, from: $1) }
        #expect(streams.map(\.device) == ["one", "two"])
        #expect(streams.map { $0.metrics.map(\.name) } == [["x", "n", "rssi"], ["x", "n", "rssi"]])
        let storage = unsafe Set(streams.map { unsafe $0.metrics.withUnsafeBufferPointer(\.baseAddress) })
        #expect(unsafe storage.count == 1)
    }

    @Test func `each frame has a stream of its own`() throws {
        let profile = try Self.profile("ruuvitag")
        let streams = profile.advertisements.indices.map { profile.stream(ofAdvertisement: $0, from: "tag") }
        #expect(streams.map(\.stream) == profile.advertisements.map(\.stream))
        #expect(streams.map(\.metrics.count) == profile.advertisements.map { $0.metrics.count + 1 })
    }

    // MARK: - Which frame

    @Test(
        arguments: [
            ("xiaomi-atc", AdvertisementSource.serviceData(0x181A), 13, 0), ("xiaomi-atc", .serviceData(0x181A), 15, 1),
            ("xiaomi-atc", .serviceData(0x181A), 14, 0), ("xiaomi-atc", .serviceData(0x181B), 13, nil),
            ("ruuvitag", .manufacturer(0x0499), 24, nil), ("bthome", .serviceData(0xFCD2), 3, 0),
        ] as [(String, AdvertisementSource, Int, Int?)]
    )
    func `a frame is matched by source, first octets and length`(
        name: String,
        source: AdvertisementSource,
        count: Int,
        index: Int?
    ) throws {
        let octets = [UInt8](repeating: 0, count: count)
        #expect(try Self.profile(name).frame(octets, from: source, name: nil)?.index == index)
    }

    @Test func `a name pattern excludes other names but not missing ones`() throws {
        let profile = try DeclarativeText.compile(Self.text("service_data: 181a", "name: \"ATC_*\""))
        let frame = { profile.frame([1, 2], from: .serviceData(0x181A), name: $0)?.index }
        #expect(frame("ATC_112233") == 0)
        #expect(frame(nil) == 0)
        #expect(frame("LYWSD03MMC") == nil)
    }

    @Test func `frames that only the name distinguishes wait for the name`() throws {
        let profile = try Self.profile("govee")
        let stream = { (octets: [UInt8], name: String?) in
            profile.frame(octets, from: .manufacturer(1), name: name).map { profile.advertisements[$0.index].stream }
        }
        let octets: [UInt8] = [1, 1, 0x0E, 0xD1, 0x32, 0x98]
        #expect(stream(octets, "GVH5106_1234") == "air")
        #expect(stream(octets, "GVH5100_1234") == "climate_h51")
        #expect(stream(octets, nil) == nil)
        #expect(stream(octets + [0, 0], nil) == nil)
        #expect(stream([1, 1, 0, 3, 0x0E, 0xD1, 0x32, 0x64, 0], nil) == "climate_h5178")
    }

    @Test(
        arguments: [
            (17, nil, nil), (17, "GVH5182_1234", "probes"), (17, "GVH5184_1234", "probes_h5184"),
            (20, nil, nil), (20, "GVH5185_1234", "probes_h5185"), (20, "GVH5191_1234", "probe_h5191"),
            (20, "GVH5198_1234", "probes_h5198"), (14, nil, "probe"),
        ] as [(Int, String?, String?)]
    )
    func `meat probes that send frames alike are told apart by their names`(
        count: Int,
        name: String?,
        stream: String?
    ) throws {
        let profile = try Self.profile("govee")
        let address: [UInt8] = [0x63, 1, 0, 1, 1]
        let octets = address + Array(repeating: 0, count: count - address.count)
        let found = profile.frame(octets, from: .manufacturer(0x2730), name: name)
        #expect(found.map { profile.advertisements[$0.index].stream } == stream)
    }

    @Test(
        arguments: [
            ("ATC_*", "ATC_", true), ("*_1", "a_1", true), ("a*b*c", "abc", true), ("a*b*c", "acb", false),
            ("a*a", "a", false), ("x", "x", true), ("x", "xy", false), ("*", "", true), ("a**b", "axb", true),
            ("ECO????", "ECOE934", true), ("ECO????", "ECOE93", false), ("ECO????", "ECOE9345", false),
            ("?", "", false), ("?", "é", true), ("W?*A?", "WxyzAq", true), ("W?*A?", "WAq", false),
            ("a*?c*d", "abcd", true), ("a*?c*d", "acd", false), ("*?", "", false), ("a?", "b?", false),
        ]
    )
    func `a star in a name pattern matches any text, a question mark one character`(
        pattern: String,
        name: String,
        fits: Bool
    ) {
        #expect(NamePattern(pattern).fits(name) == fits)
    }

    // MARK: - What is the same

    @Test func `an advertisement with an unchanged counter adds no reading`() throws {
        let decoder = try DeclarativeText.compile(Self.text("service_data: 181a", "counter: n")).makeDecoder()
        #expect(try Self.decode("0101", "0201", "0202", "0201", by: decoder) == ["2", "nothing", "2", "2"])
    }

    @Test func `repeated advertisements do not set a computed rate to 0`() throws {
        let text = """
            contract: 1
            profile: wheel
            advertisement:
              - service_data: 181a
                stream: wheel
                counter: n
                fields:
                  - {flags: n, type: u8}
                  - {flags: turns, type: u8}
                  - {flags: time, type: u8}
                  - {metric: rate, increase: turns, over: time}
                  - {metric: x, type: u8}
            """
        let decoder = try DeclarativeText.compile(text).makeDecoder()
        let first = "01 00 00 00"
        let told = try Self.decode(first, first, first, first, first, "02 04 02 00", by: decoder)
        #expect(told == ["1", "nothing", "nothing", "nothing", "nothing", "2"])
    }

    @Test func `an unknown counter never marks a repetition`() throws {
        let decoder = try DeclarativeText.compile(Self.text("service_data: 181a", "counter: n")).makeDecoder()
        #expect(try Self.decode("01FF", "02FF", "0201", by: decoder) == ["2", "2", "2"])
    }

    @Test func `a device's options are used in its advertisements`() throws {
        let text = """
            contract: 1
            profile: thing
            options:
              shift: {default: 0, range: [-50, 50]}
            advertisement:
              - service_data: 181a
                stream: thing
                fields: [{flags: t, type: i8}, {metric: x, from: t + shift}]
                tests: [{hex: "0A", expect: {x: 10}}]
            """
        let profile = try DeclarativeText.compile(text)
        #expect(profile.options.map(\.name) == ["shift"])
        let value = { (options: [String: Int64]) in
            try DeclarativeText.decode("0A", by: profile.configured(with: options))
        }
        #expect(try value([:]) == ["x 10"])
        #expect(try value(["shift": -12]) == ["x -2"])
        #expect(try value(["shift": 1000]) == ["x 60"])
        #expect(profile.configured(with: ["shift": 1]).revision != profile.revision)
    }

    // MARK: - BTHome

    private static let key = BindKey(Hexadecimal.octets("231d39c1d7cc1ab1aee224cd096db932") ?? [])
    private static let sender = Sender(address: BluetoothAddress(value: 0x5448_E68F_80A5), key: key)
    /// The middle one is that of bthome.io, the others are made with another implementation of AES-CCM.
    private static let older = "41311F263E77450011223297A8CAB6"
    private static let genuine = "41A47266C95F730011223378237214"
    private static let newer = "411531781762CA01112233D049F571"

    @Test func `a repeated encrypted advertisement adds no reading, an older one is rejected`() throws {
        let decoder = try Self.profile("bthome").makeDecoder(for: Self.sender)
        let told = try Self.decode(Self.genuine, Self.genuine, Self.newer, Self.genuine, Self.older, by: decoder)
        #expect(told[..<3] == ["2", "nothing", "2"])
        #expect(told[3].hasPrefix("it is a replay: its counter 857870592 is below 857870593; "))
        #expect(told[4].contains("replay"))
    }

    private static func decoder(remark: String = "", from marks: [ReplayCounter]) throws -> any PayloadDecoder {
        let decoder = try profile("bthome").makeDecoder(
            for: Sender(address: sender.address, key: sender.key.flatMap { BindKey($0.octets, remark: remark) })
        )
        decoder.resume(from: Dictionary(uniqueKeysWithValues: marks.map { ($0.sender, $0.counter) }))
        return decoder
    }

    @Test func `a decoder resumes from the counter of an earlier one`() throws {
        let first = try Self.decoder(from: [])
        #expect(first.replayMarks.isEmpty)
        #expect(try Self.decode(Self.genuine, by: first) == ["2"])
        let marks = first.replayMarks
        #expect(marks.map(\.counter) == [857_870_592])
        #expect(!marks[0].sender.contains("231d"))
        let told = try Self.decode(Self.older, Self.genuine, Self.newer, by: try Self.decoder(from: marks))
        #expect(told[0].contains("replay"))
        #expect(told[1...] == ["nothing", "2"])
    }

    @Test func `another key comment resets the replay counter`() throws {
        let first = try Self.decoder(remark: "2026-11-01", from: [])
        #expect(try Self.decode(Self.newer, by: first) == ["2"])
        let second = try Self.decoder(remark: "2026-11-21", from: first.replayMarks)
        #expect(try Self.decode(Self.older, by: second) == ["2"])
        #expect(first.replayMarks[0].sender != second.replayMarks[0].sender)
    }

    @Test func `a forged advertisement does not move the replay counter`() throws {
        let decoder = try Self.profile("bthome").makeDecoder(for: Self.sender)
        let told = try Self.decode("41A47266C95F73FFFFFFFF78237214", Self.genuine, by: decoder)
        #expect(told[0].contains("not encrypted with this bind key"))
        #expect(told[1] == "2")
    }

    @Test func `the sender's address is part of the nonce`() throws {
        let other = Sender(address: BluetoothAddress(value: 0x5448_E68F_80A6), key: Self.key)
        let told = try Self.decode(Self.genuine, by: try Self.profile("bthome").makeDecoder(for: other))
        #expect(told[0].contains("not encrypted with this bind key"))
    }

    @Test func `a change of any octet of an encrypted advertisement is rejected`() throws {
        let (octets, profile) = (try #require(Hexadecimal.octets(Self.genuine)), try Self.profile("bthome"))
        for index in octets.indices {
            for bit in 0..<8 {
                var forged = octets
                forged[index] ^= 1 << UInt8(bit)
                let decoder = profile.makeDecoder(for: Self.sender)
                let hex = Hexadecimal.text(forged.span)
                #expect(try Self.decode(hex, by: decoder)[0].contains(" "), "octet \(index), bit \(bit)")
            }
        }
    }

    @Test func `a truncated encrypted advertisement is rejected`() throws {
        let (octets, profile) = (try #require(Hexadecimal.octets(Self.genuine)), try Self.profile("bthome"))
        for length in 0..<octets.count {
            let decoder = profile.makeDecoder(for: Self.sender)
            let hex = Hexadecimal.text(Array(octets[..<length]).span)
            #expect(try Self.decode(hex, by: decoder)[0].contains(" "), "\(length) octets")
        }
    }

    @Test func `descriptions never contain the key`() {
        #expect("\(Self.sender)".contains("231d") == false)
        #expect(String(reflecting: Self.sender).contains("35") == false)
    }

    // MARK: - Plain and encrypted frames

    @Test(arguments: [(0, "A4C138112233 00EA 2D 55 0B9A 1F"), (1, "332211 38C1A4 0F27 1027 B80B 64 01 00")])
    func `a plain frame beside encrypted ones is rejected if the device has a key`(frame: Int, hex: String) throws {
        let profile = try Self.profile("xiaomi-atc")
        let keyless = profile.makeDecoder(for: Sender(address: Self.sender.address))
        #expect(try !Self.decode(hex, by: keyless, frame: frame)[0].contains(" "))
        let decoder = profile.makeDecoder(for: Self.sender)
        #expect(try Self.decode(hex, by: decoder, frame: frame)[0].contains("anybody could send it"))
        let octets = try #require(Hexadecimal.octets(hex))
        let explanation = ProfileTools.explain([octets], characteristic: frame, of: profile, from: Self.sender)
        #expect(explanation?.rejection?.description.contains("anybody could send it") == true)
    }

    @Test func `a plain frame is decoded in spite of a key that no frame of the profile uses`() throws {
        let decoder = try Self.profile("govee").makeDecoder(for: Self.sender)
        #expect(try Self.decode("00 03215D 64 00", by: decoder) == ["3"])
    }

    // MARK: - What is wrong

    @Test(
        arguments: [
            (text(), "4:5: an advertisement has either 'manufacturer' or 'service_data'"),
            (
                text("service_data: 181a", "manufacturer: 1"),
                "4:5: an advertisement has either 'manufacturer' or 'service_data'"
            ),
            (
                text("manufacturer: 70000"),
                "6:19: '70000' is invalid; expected a company's number from 0 to 0xFFFF, such as 0x0499"
            ),
            (text("service_data: 181a", "counter: sequence"), "7:5: no earlier field is called 'sequence'; there are"),
            (text("service_data: 181a", "envelope: bthom"), "7:15: 'bthom' is invalid; expected one of bthome"),
            (
                text("service_data: 181a", frames: "services: [180d]"),
                "7:1: 'services' cannot be combined with 'advertisement': such devices are never connected"
            ),
            (
                text(
                    "service_data: 181a",
                    frames: "  - {service_data: 181b, stream: thing, fields: [{metric: x, type: u8}]}"
                ),
                "7:26: duplicate stream 'thing'; choose another name"
            ),
            (
                text(
                    "service_data: 181a",
                    frames: "  - {service_data: 181a, stream: other, fields: [{metric: x, type: u8}]}"
                ),
                "7:26: the earlier frame 'thing' takes the same data; give each its 'begins', 'length' or 'name'"
            ),
            ("contract: 1\nprofile: x\nadvertisement: []", "3:1: 'advertisement' needs at least one element"),
            (
                text("service_data: 181a", "tests: [{hex: \"0101\", key: \"00\", expect: {x: 1, n: 1}}]"),
                "7:27: 'key' has no meaning here, although a test may have it"
            ),
        ]
    )
    func `errors in advertisements have a position`(text: String, error: String) throws {
        let errors = try DeclarativeText.errors(text)
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }
}
