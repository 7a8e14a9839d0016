import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

struct ExplanationTests {
    private func explain(_ payloads: String..., fields: String...) throws -> Explanation {
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        let octets = try payloads.map { try #require(Hexadecimal.octets($0)) }
        return try #require(ProfileTools.explain(octets, characteristic: 0, of: profile))
    }

    private func lines(_ explanation: Explanation) -> [String] {
        explanation.rows.map { row in
            "\(row.line) \(row.octets.lowerBound)..<\(row.octets.upperBound) \(row.field) [\(row.source)] "
                + "\(row.raw) -> \(row.value) (\(row.remark))"
        }
    }

    @Test func `an explanation covers every octet with raw value and result`() throws {
        let explanation = try explain(
            "05 C4 09 FF FF 2A 77",
            fields: "{flags: f, type: u8, is: [5, 6]}",
            "{metric: temperature, type: i16le, scale: 0.01, offset: 1, unit: °C, when: f.0}",
            "{metric: humidity, type: u16le, unit: \"%\", when: f.1}",
            "{metric: battery, type: u16le, unknown: {0xFFFF: flat}}",
            "{metric: mode, from: \"f[3:2]\", enum: {0: idle, 1: fast}}",
            "{skip: 1}"
        )
        #expect(
            lines(explanation) == [
                "9 0..<1 f [u8] 5 = 0b101 ->  (must be 5 or 6)",
                "10 1..<3 temperature [i16le] 2500 -> 26.0 °C (present: f.0; × 0.01 + 1)",
                "11 3..<3 humidity [u16le]  ->  (absent: f.1 is false)",
                "12 3..<5 battery [u16le] 65535 -> null (unknown: see the reason)",
                "12 5..<5 battery_reason []  -> \"flat\" (the reason)",
                "13 5..<5 mode [f[3:2]] 1 -> \"fast\" (label of 1)",
                "14 5..<6 skipped [] 1 ->  ()",
            ]
        )
        #expect(explanation.leftOver == 6..<7)
        #expect(explanation.rejection == nil)
    }

    @Test func `an explanation distinguishes computed values from decoded ones`() throws {
        let explanation = try explain(
            "02 64 00 00 08",
            "02 65 00 00 0C",
            fields: "{skip: 1}",
            "{metric: turns, type: u16le, kind: counter}",
            "{flags: clock, type: u16le}",
            "{metric: cadence, increase: turns, over: clock, scale: 60*1024, unit: rpm}"
        )
        #expect(
            lines(explanation).last == "12 5..<5 cadence [increase of turns over clock]  -> 60.0 rpm (× 60*1024)"
        )
    }

    @Test func `an explanation shows the rounds and the padding of a group`() throws {
        let explanation = try explain(
            "03 01 FF 02 02",
            fields: "{repeat: rest, size: n, fields: [{flags: n, type: u8}, {metric: level, type: u8}]}"
        )
        let rounds = explanation.rows.map { "\($0.octets) \($0.field) \($0.remark)" }
        #expect(
            rounds == [
                "0..<0 group round 1", "0..<1 n ", "1..<2 level ",
                "2..<3 group skipped: the group is longer than its fields", "3..<3 group round 2",
                "3..<4 n ", "4..<5 level ",
            ]
        )
    }

    @Test func `an explanation says whether a group with a condition is there`() throws {
        let group = "{when: f.0, fields: [{metric: x, type: u8}]}"
        let rows = try ["01 05", "00 05"].map { hex in
            let explanation = try explain(hex, fields: "{flags: f, type: u8}", group)
            return explanation.rows.dropFirst().map { "\($0.octets) \($0.field) \($0.remark)" }
        }
        #expect(rows == [["1..<1 group present: f.0", "1..<2 x "], ["1..<1 group absent: f.0 is false"]])
    }

    @Test func `an explanation of a reject shows the failed field and the rest`() throws {
        let explanation = try explain("01 02 03", fields: "{metric: a, type: u8}", "{metric: b, type: u32le}")
        #expect(explanation.rows.last?.field == "b")
        #expect(explanation.rows.last?.remark == "rejected here")
        #expect(explanation.rejection == .truncated(offset: 1, needed: 4, left: 2))
        #expect(explanation.leftOver == 1..<3)
    }

    @Test func `explanations agree with decoding for every standard test`() throws {
        let registry = try ProfileRegistry.load(paths: [SharedLibrary.root + "/Plugins/Standard"])
        for profile in registry.profiles {
            for vector in ProfileTools.runVectors(of: profile) {
                let index = try #require(ProfileTools.characteristic(vector.stream, of: profile))
                let payloads = vector.hex.split(separator: ",", omittingEmptySubsequences: false)
                    .compactMap { Hexadecimal.octets($0) }
                let explanation = try #require(
                    ProfileTools.explain(payloads, characteristic: index, of: profile, from: vector.sender)
                )
                let decoded = try? ProfileTools.decode(
                    payloads,
                    characteristic: index,
                    of: profile,
                    from: vector.sender
                )
                #expect((explanation.rejection == nil) == (decoded != nil), "\(profile.name) \(vector.hex)")
                var end = 0
                for row in explanation.rows where !row.octets.isEmpty {
                    #expect(row.octets.lowerBound == end, "\(profile.name) \(vector.hex)")
                    end = row.octets.upperBound
                }
                #expect(explanation.leftOver == end..<explanation.payload.count)
                guard let decoded else { continue }
                // A field of a group that is not there leaves its place in the list empty.
                let values = decoded.filter { $0.value != .null }
                let isTold = { (row: Explanation.Row) in !row.value.isEmpty && !row.value.hasPrefix("null") }
                let told = explanation.isRepetition ? 0 : explanation.rows.count(where: isTold)
                #expect(told == values.count, "\(profile.name) \(vector.hex)")
            }
        }
    }

    @Test func `an explanation marks a repeated advertisement`() throws {
        let path = SharedLibrary.root + "/Plugins/Standard/ruuvitag.yaml"
        let profile = try #require(ProfileTools.load(path).profiles.first)
        let first = try #require(Hexadecimal.octets("0512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F"))
        let once = try #require(ProfileTools.explain([first], characteristic: 0, of: profile))
        let twice = try #require(ProfileTools.explain([first, first], characteristic: 0, of: profile))
        #expect(!once.isRepetition && twice.isRepetition)
        #expect(once.rows == twice.rows && once.leftOver == 18..<24)
    }

    @Test func `native profiles have no explanation`() throws {
        let registry = try ProfileRegistry.load(paths: [try SharedLibrary.product("NumberService")])
        let profile = try #require(registry.profiles.first)
        #expect(ProfileTools.explain([[1]], characteristic: 0, of: profile) == nil)
    }
}
