import Foundation
import TestKit
import Testing

/// `gattherd profile` as a person uses it, on the profiles that come with gattherd.
@Suite(.timeLimit(.minutes(2))) struct ProfileCommandTests {
    private func profile(_ words: String...) async throws -> (Int32, String) {
        try await Programs.run(Programs.path("gattherd"), ["profile"] + words)
    }

    @Test(arguments: [
        ("heart-rate", "2a37", "06 48", #"{"heart_rate":72,"sensor_contact":true}"#),
        ("heart-rate", "heart_rate", "16 48 00 03", #"{"heart_rate":72,"sensor_contact":true,"rr_interval":[0.75]}"#),
        ("heart-rate", "2a37", "10 3c 00 04 01 04", #"{"heart_rate":60,"rr_interval":[1.0,1.0009765625]}"#),
        ("heart-rate", "2A38", "01", #"{"body_sensor_location":"chest"}"#),
        ("battery", "2a19", "64", #"{"battery_level":100}"#),
        ("number-service", "number", "ff", #"{"number":255}"#),
    ])
    func `A payload is decoded`(name: String, characteristic: String, hex: String, json: String) async throws {
        #expect(try await profile("decode", name, characteristic, hex, "--json") == (0, json + "\n"))
    }

    @Test(arguments: ["", "00", "01 48"])
    func `A payload that does not decode ends with exit code 65`(hex: String) async throws {
        #expect(try await profile("decode", "heart-rate", "2a37", hex) == (65, ""))
    }

    @Test(arguments: [
        (["decode", "heart-rate", "2a37", "zz"], 64), (["decode", "hart-rate", "2a37", "00"], 65),
        (["decode", "heart-rate", "2aff", "00"], 65), (["show", "nothing"], 65), (["test", "/nowhere.yaml"], 74),
    ])
    func `What is not there is told with an exit code`(words: [String], code: Int) async throws {
        #expect(try await Programs.run(Programs.path("gattherd"), ["profile"] + words) == (Int32(code), ""))
    }

    @Test func `All profiles are listed and can be shown`() async throws {
        let (code, list) = try await profile("list")
        #expect(code == 0)
        for name in ["heart-rate", "number-service", "battery", "environmental-sensing"] {
            #expect(list.contains("\n\(name) "))
            #expect(try await profile("show", name).0 == 0)
        }
    }

    @Test(arguments: [("100", 0, "1 passed, 0 failed\n"), ("99", 65, "0 passed, 1 failed\n")])
    func `A profile's own tests are run`(expected: String, code: Int32, output: String) async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(
            """
            contract: 1
            profile: mine
            title: Mine
            services: [180f]
            characteristics:
              - uuid: 2a19
                stream: battery
                subscribe: notify
                fields: [{metric: battery_level, type: u8, unit: "%"}]
                tests: [{hex: "64", expect: {battery_level: \(expected)}}]
            """,
            to: "mine.yaml"
        )
        #expect(try await profile("test", path) == (code, output))
    }
}
