import GattherdGATT
import GattherdModel
import GattherdProfiles
import Testing

/// Metrics that are computed from two payloads.
struct IncreaseTests {
    private func decode(_ hex: [String], _ fields: String...) throws -> [[String]] {
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        let decoder = profile.makeDecoder()
        return try hex.map { hex in
            let octets = try #require(Hexadecimal.octets(hex))
            var samples: [Sample] = []
            try decoder.decode(octets.span, characteristic: 0, into: &samples)
            let metrics = profile.characteristics[0].metrics
            return samples.compactMap { sample in
                let json = JSONWriter.bytes { $0.value(sample.value) }
                return "\(metrics[sample.metric].name) \(String(decoding: json, as: UTF8.self))"
            }
        }
    }

    private func cadence(_ hex: String...) throws -> [[String]] {
        try decode(
            hex,
            "{flags: f, type: u8}",
            "{flags: turns, type: u16le, when: f.1}",
            "{flags: time, type: u16le, when: f.1}",
            "{metric: cadence, increase: turns, over: time, scale: 60*1024, unit: rpm, range: [0, 250]}"
        )
    }

    @Test func `a rate needs two payloads`() throws {
        #expect(try cadence("02 64 00 00 08", "02 65 00 00 0C") == [[], ["cadence 60.0"]])
    }

    @Test func `counter and clock may wrap`() throws {
        #expect(try cadence("02 FF FF 00 FE", "02 01 00 00 06") == [[], ["cadence 60.0"]])
    }

    @Test func `the rate becomes 0 after some payloads with an unchanged clock`() throws {
        let still = "02 65 00 00 0C"
        #expect(
            try cadence("02 64 00 00 08", still, still, still, still, still).dropFirst(2).flatMap { $0 } == [
                "cadence 0", "cadence 0",
            ]
        )
    }

    @Test func `the first event after a standstill has no rate, as the clock may have wrapped`() throws {
        let still = "02 64 00 00 08"
        #expect(
            try cadence(still, still, still, still, "02 65 00 00 0C", "02 66 00 00 10").dropFirst(3)
                == [["cadence 0"], [], ["cadence 60.0"]]
        )
    }

    @Test func `a short pause does not hide the next event`() throws {
        #expect(
            try cadence("02 64 00 00 08", "02 64 00 00 08", "02 65 00 00 0C") == [[], [], ["cadence 60.0"]]
        )
    }

    @Test func `a reset counter gives no rate and no reject`() throws {
        #expect(try cadence("02 64 00 00 08", "02 00 00 00 0C", "02 01 00 00 10") == [[], [], ["cadence 60.0"]])
    }

    @Test func `a payload without the counter keeps the state`() throws {
        #expect(try cadence("02 64 00 00 08", "00", "02 65 00 00 0C") == [[], [], ["cadence 60.0"]])
    }

    @Test func `each connection starts without a counter state`() throws {
        let text = DeclarativeText.profile(fields: ["{metric: n, type: u8}", "{metric: more, increase: n}"])
        let profile = try DeclarativeText.compile(text)
        for _ in 0..<2 { #expect(try DeclarativeText.decode("05", by: profile) == ["n 5"]) }
    }

    @Test func `a rejected payload does not count for the next increase`() throws {
        let tests = """
                tests:
                  - {hex: [05 00, "63", 07 00], expect: {n: 7, more: 2, x: 0}}
            """
        let fields = ["{metric: n, type: u8}", "{metric: more, increase: n}", "{metric: x, type: u8}"]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields, more: tests))
        #expect(ProfileTools.runVectors(of: profile).map(\.failure) == [nil])
    }

    @Test func `an increase without a clock is an integer`() throws {
        #expect(
            try decode(
                ["FE", "01", "01"],
                "{metric: n, type: u8, kind: counter, wraps: 8}",
                "{metric: more, increase: n}"
            )
                == [["n 254"], ["n 1", "more 3"], ["n 1", "more 0"]]
        )
    }

    @Test func `a counter can wrap before its octets do`() throws {
        #expect(
            try decode(
                ["0F", "01"],
                "{metric: n, type: u8, kind: counter, wraps: 4}",
                "{metric: more, increase: n, scale: 0.5}"
            )
                == [["n 15"], ["n 1", "more 1.0"]]
        )
    }

    @Test func `a test compares the last of several payloads`() throws {
        let tests = """
                tests:
                  - {hex: ["05", "07"], expect: {n: 7, more: 2}}
                  - {hex: ["05", "", "07"], expect: {n: 7, more: 2}}
                  - {hex: ["05", ""], reject: truncated}
                  - {hex: ["05", "07"], expect: {n: 7, more: 3}}
            """
        let fields = ["{metric: n, type: u8}", "{metric: more, increase: n}"]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields, more: tests))
        let results = ProfileTools.runVectors(of: profile)
        #expect(results.map(\.failure) == [nil, nil, nil, "more: expected [3], decoded [2]"])
        #expect(results.first?.hex == "05, 07")
    }
}

/// Values that the characteristics of a profile have in common.
struct SharedValueTests {
    private static let text = """
        contract: 1
        profile: wheel
        services: [181a]
        options:
          circumference: {default: 2000, range: [100, 4000], unit: mm}
        characteristics:
          - uuid: 2a6e
            stream: width
            read: true
            fields: [{flags: width, from: octets, share: true}, {metric: first, type: u8}]
          - uuid: 2a6f
            stream: speed
            subscribe: notify
            fields:
              - {metric: turns, type: u16le, kind: counter}
              - {flags: time, type: u8}
              - {metric: way, increase: turns, over: time, times: circumference, scale: 1/1000, unit: m}
              - {metric: load, type: u8, when: width == 1}
              - {metric: load, type: u16le, when: width != 1}
        """

    private func decode(_ steps: [(characteristic: Int, hex: String)], by profile: any Profile) throws -> [SampleValue]
    {
        let decoder = profile.makeDecoder()
        var samples: [Sample] = []
        for step in steps {
            samples = []
            let octets = try #require(Hexadecimal.octets(step.hex))
            try decoder.decode(octets.span, characteristic: step.characteristic, into: &samples)
        }
        return samples.map(\.value)
    }

    @Test func `a shared value decodes another characteristic of the connection`() throws {
        let profile = try DeclarativeText.compile(Self.text)
        let payload = (characteristic: 1, hex: "01 00 01 07 01")
        #expect(try decode([payload], by: profile) == [.integer(1), .integer(263)])
        #expect(try decode([(0, "05"), payload], by: profile) == [.integer(1), .integer(7)])
        #expect(try decode([(0, "05"), (0, "05 06"), payload], by: profile) == [.integer(1), .integer(263)])
    }

    @Test func `an option of the device replaces the default, within its range`() throws {
        let profile = try DeclarativeText.compile(Self.text)
        let steps = [(characteristic: 1, hex: "01 00 01 00 00"), (1, "04 00 02 00 00")]
        #expect(profile.options.map(\.name) == ["circumference"])
        let cases: [([String: Int64], Double)] = [
            ([:], 6), (["circumference": 2100], 6.3), (["other": 1], 6), (["circumference": 9000], 12),
        ]
        for (given, way) in cases {
            let configured = profile.configured(with: given)
            #expect(try decode(steps, by: configured)[1] == .real(way))
            #expect((configured.revision == profile.revision) == (given["circumference"] == nil))
        }
    }

    @Test(
        arguments: [
            ("{default: 2000, range: [100, 4000]", "{default: 20, range: [100, 4000]", "a 'range' around its default"),
            ("times: circumference", "times: circumfrence", "did you mean 'circumference'?"),
            ("width == 1", "depth == 1", "no earlier field is called 'depth'"),
            (", unit: mm}", ", units: mm}", "units"),
        ]
    )
    func `errors in options and shared values are reported`(right: String, wrong: String, reason: String) throws {
        let text = Self.text.split(separator: right, omittingEmptySubsequences: false).joined(separator: wrong)
        #expect(try DeclarativeText.errors(text).contains { $0.contains(reason) })
    }
}
