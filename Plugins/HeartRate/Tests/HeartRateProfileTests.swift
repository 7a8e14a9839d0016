import GattherdGATT
import HeartRate
import ProfileKit
import Testing

struct HeartRateProfileTests {
    typealias Sample = ProfileTester.Sample

    private func decode(_ hex: String, _ stream: String = "heart_rate") throws -> [Sample] {
        let octets = try #require(Hexadecimal.octets(hex))
        return try ProfileTester(HeartRateProfile.self).decode(octets, stream: stream)
    }

    @Test(
        arguments: [
            (
                "16 48 00 04",
                [
                    Sample("heart_rate", .integer(72)), Sample("sensor_contact", .boolean(true)),
                    Sample("rr_interval", .real(1)),
                ]
            ),
            (
                "19 2C 01 E8 03 00 02 90 02",
                [
                    Sample("heart_rate", .integer(300)), Sample("energy_expended", .integer(1000)),
                    Sample("rr_interval", .real(0.5)), Sample("rr_interval", .real(0.640625)),
                ]
            ),
            (
                "0E 4B E8 03",
                [
                    Sample("heart_rate", .integer(75)), Sample("sensor_contact", .boolean(true)),
                    Sample("energy_expended", .integer(1000)),
                ]
            ),
            ("06 4B", [Sample("heart_rate", .integer(75)), Sample("sensor_contact", .boolean(true))]),
            ("04 4B", [Sample("heart_rate", .integer(75)), Sample("sensor_contact", .boolean(false))]),
            ("00 4B", [Sample("heart_rate", .integer(75))]),
        ]
    )
    func `heart rate measurements are decoded`(hex: String, samples: [Sample]) throws {
        #expect(try decode(hex) == samples)
    }

    @Test func `neighbouring beat intervals differ in their decimals`() throws {
        #expect(
            try decode("10 48 FF 03 00 04 01 04").dropFirst().map(\.value)
                == [.real(0.999023), .real(1), .real(1.000977)]
        )
    }

    @Test func `a rate of 0 without skin contact is unknown`() throws {
        #expect(try decode("04 00").first == Sample("heart_rate", .unknown))
        #expect(try decode("05 00 00").first == Sample("heart_rate", .unknown))
        #expect(try decode("06 00").first == Sample("heart_rate", .integer(0)))
        #expect(try decode("00 00").first == Sample("heart_rate", .integer(0)))
    }

    @Test func `the contact bit is ignored without the support bit`() throws {
        #expect(try decode("02 4B") == [Sample("heart_rate", .integer(75))])
    }

    @Test func `reserved flags and octets after the last field are ignored`() throws {
        #expect(try decode("E0 4B 01 02 03") == [Sample("heart_rate", .integer(75))])
    }

    @Test(
        arguments: [
            ("", "truncated: a field at offset 0 needs 1 byte, 0 left"),
            ("16", "truncated: a field at offset 1 needs 1 byte, 0 left"),
            ("01", "truncated: a field at offset 1 needs 2 bytes, 0 left"),
            ("01 48", "truncated: a field at offset 1 needs 2 bytes, 1 left"),
            ("08 48 01", "truncated: a field at offset 2 needs 2 bytes, 1 left"),
            ("10 48 00", "truncated: a field at offset 2 needs 2 bytes, 1 left"),
            ("10 48 00 04 01", "truncated: a field at offset 4 needs 2 bytes, 1 left"),
        ]
    )
    func `a truncated payload is rejected with the missing field`(hex: String, reason: String) throws {
        let error = #expect(throws: PayloadError.self) { try decode(hex) }
        #expect(error?.description == reason)
    }

    @Test(
        arguments: ["19 2C 01 E8 03 00 02 90 02", "16 48 00 04", "0E 4B E8 03"]
    )
    func `a payload cut at any octet is decoded or rejected`(hex: String) throws {
        let octets = try #require(Hexadecimal.octets(hex))
        for length in 0..<octets.count {
            _ = try? ProfileTester(HeartRateProfile.self).decode(Array(octets[..<length]), stream: "heart_rate")
        }
    }

    @Test(
        arguments: [
            ("00", ProfileTester.Value.text("other")), ("01", .text("chest")), ("05", .text("ear lobe")),
            ("06", .text("foot")), ("07", .unknown), ("FF", .unknown),
        ]
    )
    func `body sensor locations are labels`(hex: String, value: ProfileTester.Value) throws {
        #expect(try decode(hex, "body_sensor_location") == [Sample("body_sensor_location", value)])
    }

    @Test func `a battery level is a percentage or unknown`() throws {
        #expect(try decode("5F", "battery") == [Sample("battery_level", .integer(95))])
        #expect(try decode("FF", "battery") == [Sample("battery_level", .unknown)])
        #expect(throws: PayloadError.invalid(reason: "battery_level is 101, outside 0 to 100")) {
            try decode("65", "battery")
        }
    }

    @Test func `resetting the energy writes 1 to the control point`() throws {
        #expect(try ProfileTester(HeartRateProfile.self).encode(control: "reset_energy_expended") == [0x01])
    }

    @Test(.timeLimit(.minutes(5)))
    func `random payloads never trap`() {
        let rehearsal = ProfileTester(HeartRateProfile.self)
        var random = SystemRandomNumberGenerator()
        for _ in 0..<100_000 {
            let payload = (0..<Int.random(in: 0...24)).map { _ in UInt8.random(in: 0...255, using: &random) }
            for stream in ["heart_rate", "body_sensor_location", "battery"] {
                _ = try? rehearsal.decode(payload, stream: stream)
            }
        }
    }
}
