import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// Decoding of characteristics by their Presentation Format descriptors.
struct PresentationTests {
    private func make(
        _ formats: String...,
        description: String? = nil,
        uuid: BluetoothUUID = 0xFFF1,
        taken: Set<String> = []
    ) throws -> SelfDescription? {
        let described = DescribedCharacteristic(
            service: 0xFFF0,
            uuid: uuid,
            description: description.map { Array($0.utf8) },
            formats: try formats.map { try #require(Hexadecimal.octets($0)) },
            isNotifying: true,
            isReadable: true
        )
        return PresentationProfile.make(of: [described], taken: taken)
    }

    private func decode(_ hex: String, _ formats: String...) throws -> [String] {
        let described = DescribedCharacteristic(
            service: 0xFFF0,
            uuid: 0xFFF1,
            description: Array("x".utf8),
            formats: try formats.map { try #require(Hexadecimal.octets($0)) },
            isNotifying: true,
            isReadable: true
        )
        let made = try #require(PresentationProfile.make(of: [described], taken: []))
        return try DeclarativeText.decode(hex, by: made.profile)
    }

    @Test(
        arguments: [
            ("01", "01", "true"), ("01", "02", "x is 2, which is neither 0 nor 1"), ("02", "07", "3"),
            ("03", "F9", "9"),
            ("04", "FE", "254"), ("05", "FF FF", "4095"), ("06", "01 80", "32769"), ("07", "01 00 80", "8388609"),
            ("08", "FF FF FF FF", "4294967295"), ("09", "01 00 00 00 00 80", "140737488355329"),
            ("0A", "01 00 00 00 00 00 00 00", "1"), ("0B", "00 01", "\"0001\""), ("0C", "FE", "-2"),
            ("0D", "FE 0F", "-2"),
            ("0D", "01 F0", "1"), ("0E", "FE FF", "-2"), ("0F", "FE FF FF", "-2"), ("10", "FE FF FF FF", "-2"),
            ("11", "FE FF FF FF FF FF", "-2"), ("12", "FE FF FF FF FF FF FF FF", "-2"), ("13", "01", "\"01\""),
            ("14", "00 00 C0 3F", "1.5"), ("15", "00 00 00 00 00 00 F8 3F", "1.5"), ("16", "0F F0", "1.5"),
            ("17", "DA 03 00 FF", "98.6"), ("18", "01 00 02 00", "\"01000200\""), ("19", "41 62", "\"Ab\""),
            ("1A", "41 00", "\"A\""), ("1B", "01 02", "\"0102\""), ("1C", "", "\"\""),
            ("06", "01", "wrong length: 1 bytes instead of 2"),
            ("06", "01 02 03", "wrong length: 3 bytes instead of 2"),
        ]
    )
    func `every format decodes its octets`(code: String, hex: String, value: String) throws {
        let decoded = try decode(hex, "\(code) 00 00 27 01 00 00")
        #expect(decoded == ["x \(value)"] || decoded == [value])
    }

    @Test(
        arguments: [
            ("0E FE 2F 27 01 00 00", "C4 09", "25.0"), ("06 FE AD 27 01 00 00", "39 30", "123.45"),
            ("04 02 00 27 01 00 00", "05", "500"), ("05 FF 00 27 01 00 00", "0F 00", "1.5"),
            ("16 FE 2F 27 01 00 00", "0F F0", "1.5"), ("04 F0 00 27 01 00 00", "05", "5"),
        ]
    )
    func `the exponent applies to integers only`(format: String, hex: String, value: String) throws {
        #expect(try decode(hex, format) == ["x \(value)"])
    }

    @Test(
        arguments: [
            ("04 00 2F 27 01 00 00", "°C", []), ("04 00 00 27 01 00 00", nil, []),
            (
                "04 00 27 00 01 00 00", nil,
                [
                    """
                    characteristic fff1: its unit 0x27 is not assigned; \
                    with its bytes swapped it is none, which is taken
                    """
                ]
            ),
            (
                "04 00 27 2F 01 00 00", "°C",
                [
                    """
                    characteristic fff1: its unit 0x2F27 is not assigned; \
                    with its bytes swapped it is '°C', which is taken
                    """
                ]
            ),
            ("04 00 34 12 01 00 00", nil, ["characteristic fff1: its unit 0x1234 is not assigned, and is left out"]),
        ] as [(String, String?, [String])]
    )
    func `a unit with swapped octets is recognised and reported`(
        format: String,
        unit: String?,
        remarks: [String]
    ) throws {
        let made = try #require(try make(format))
        #expect(made.profile.characteristics[0].metrics.map(\.unit) == [unit])
        #expect(made.remarks == remarks)
    }

    @Test(
        arguments: [
            ("Soil Moisture (%)", 0xFFF1, "soil_moisture"), (nil, 0x2A6E, "temperature"), ("", 0x2A6E, "temperature"),
            ("温度", 0xFFF1, "c_fff1"), (nil, 0xFFF1, "c_fff1"), ("taken", 0xFFF1, "taken_2"),
            ("availability", 0xFFF1, "availability_2"),
        ] as [(String?, UInt16, String)]
    )
    func `the stream is named by the description, the assigned name or the UUID`(
        description: String?,
        uuid: UInt16,
        name: String
    ) throws {
        let format = "06 FE AD 27 01 00 00"
        let made = try #require(
            try make(format, description: description, uuid: BluetoothUUID(uuid), taken: ["taken"])
        )
        #expect(made.profile.characteristics.map(\.stream) == [name])
        #expect(made.profile.characteristics[0].metrics.map(\.name) == [name])
    }

    @Test func `namespace descriptions distinguish several values`() throws {
        #expect(try make("16 00 2F 27 01 06 01")?.profile.characteristics[0].stream == "c_fff1_main")
        #expect(
            try decode("01 02 00", "04 00 00 27 01 0D 01", "06 00 00 27 01 0E 01") == ["x_left 1", "x_right 2"]
        )
        #expect(try decode("01 02", "04 00 00 27 01 00 00", "04 00 00 27 01 00 00") == ["x_1 1", "x_2 2"])
    }

    @Test func `the profile is for the described characteristic, not for another with its UUID`() throws {
        var described = DescribedCharacteristic(
            service: 0x1815,
            uuid: 0x2A58,
            formats: [[0x06, 0xFE, 0x2F, 0x27, 1, 0, 0]],
            isNotifying: true,
            isReadable: true
        )
        described.handle = "service1/char2"
        let made = try #require(PresentationProfile.make(of: [described], taken: []))
        #expect(made.profile.characteristics.map(\.handle) == ["service1/char2"])
    }

    @Test func `values that a device describes alike are numbered`() throws {
        #expect(try decode("01 02", "04 00 00 27 01 06 01", "04 00 00 27 01 06 01") == ["x_1 1", "x_2 2"])
        #expect(
            try decode("01 02 03", "04 00 00 27 01 02 00", "04 00 00 27 01 00 00", "04 00 00 27 01 06 01")
                == ["x_1 1", "x_2 2", "x_3 3"]
        )
    }

    @Test(
        arguments: ["00 00 00 27 01 00 00", "1D 00 00 27 01 00 00", "04 00 00 27 01 00", ""]
    )
    func `an invalid presentation format is reported and not decoded`(format: String) throws {
        #expect(try make(format) == nil || make(format)?.profile.characteristics.isEmpty == true)
    }

    @Test func `a described characteristic notifies, is read at connect and is polled if it cannot notify`() throws {
        let made = try #require(try make("04 00 00 27 01 00 00"))
        let descriptor = made.profile.characteristics[0]
        #expect(
            descriptor.subscription == .notify && descriptor.isReadAtConnect && descriptor.pollInstead == .seconds(60)
        )
        #expect(made.profile.services.isEmpty && descriptor.service == 0xFFF0)
    }

    @Test(
        arguments: [
            ["04 01 00 27 01 00 00"], ["06 00 00 27 01 00 00"], ["04 00 2F 27 01 00 00"],
            ["04 00 00 27 01 00 00", "04 00 00 27 01 00 00"],
        ]
    )
    func `another format of the same characteristic is another version of the profile`(formats: [String]) throws {
        func identity(_ formats: [String]) throws -> ProfileIdentity {
            let described = DescribedCharacteristic(
                service: 0xFFF0,
                uuid: 0xFFF1,
                formats: try formats.map { try #require(Hexadecimal.octets($0)) },
                isNotifying: true,
                isReadable: true
            )
            return ProfileIdentity(try #require(PresentationProfile.make(of: [described], taken: [])).profile)
        }
        let plain = try identity(["04 00 00 27 01 00 00"])
        #expect(try identity(formats) != plain)
        #expect(try identity(["04 00 00 27 01 00 00"]) == plain)
    }

    @Test func `random descriptors and values never trap`() throws {
        var generator = SplitMix(state: 0x2904)
        for _ in 0..<2000 {
            let formats = (0...generator.next() % 2).map { _ in
                var format = generator.payload(atMost: 0) + [UInt8(truncatingIfNeeded: generator.next() % 0x1E)]
                while format.count < 7 { format.append(UInt8(truncatingIfNeeded: generator.next())) }
                return format
            }
            let described = DescribedCharacteristic(
                service: 0xFFF0,
                uuid: 0xFFF1,
                description: generator.payload(atMost: 20),
                formats: formats,
                isNotifying: true,
                isReadable: true
            )
            let decoder = PresentationProfile.make(of: [described], taken: [])?.profile.makeDecoder()
            for _ in 0..<5 { decoder?.tryDecode(generator.payload(atMost: 20)) }
        }
    }
}
