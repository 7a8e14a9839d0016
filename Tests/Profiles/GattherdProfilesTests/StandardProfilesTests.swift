import FoundationEssentials
import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// The declarative profiles of the package.
struct StandardProfilesTests {
    private static let folder = SharedLibrary.root + "/Plugins/Standard"
    private static let files =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter { $0.hasSuffix(".yaml") }
    private let registry: ProfileRegistry

    init() throws {
        registry = try ProfileRegistry.load(paths: [Self.folder])
    }

    @Test func `all standard profiles are valid and named like their files`() {
        #expect(registry.refusals.map(\.description) == [])
        #expect(registry.profiles.count == Self.files.count)
        for profile in registry.profiles { #expect(profile.origin.hasSuffix("/\(profile.name).yaml")) }
    }

    @Test func `the catalogue has a line for each standard profile`() throws {
        let page = try String(contentsOfFile: Self.folder + "/README.md", encoding: .utf8)
        #expect(Self.files.count >= 25)
        for file in Self.files { #expect(page.contains("\n| `\(file.dropLast(".yaml".count))` |"), "\(file)") }
    }

    @Test func `every model is recognised by its own traits`() {
        let models = registry.profiles.flatMap { profile in profile.models.map { (profile, $0) } }
        #expect(models.count >= 200)
        for (profile, model) in models {
            let identity = registry.identify(model.exampleTraits)
            #expect(identity?.profile == profile.name, "\(model)")
            #expect(identity?.model?.description == model.description)
        }
    }

    @Test(
        arguments: [
            ("250518512010001", "6e400001-b5a3-f393-e0a9-e50e24dcca9e", "vatrer"), ("ECO1234", "0001", "humsienk"),
            ("25051812512010001", "6e400001-b5a3-f393-e0a9-e50e24dcca9e", nil), ("ECO12345", "0001", nil),
        ] as [(String, String, String?)]
    )
    func `batteries are recognised by the length of their names`(
        name: String,
        service: String,
        profile: String?
    ) throws {
        let services = [try #require(BluetoothUUID(service))]
        let identity = registry.identify(AdvertisedTraits(name: name, services: services))
        #expect(identity?.profile == profile)
    }

    @Test func `a Humsienk battery monitor is greeted, and its answer is no reject`() throws {
        let profile = try #require(registry["humsienk"])
        #expect(profile.tasks.map(\.action) == [.write([0xAA, 0, 0, 0, 0], isAcknowledged: true, answer: nil)])
    }

    @Test func `a profile decodes the advertisements of each of its models`() {
        for profile in registry.profiles { #expect(ProfileTools.undecodedModels(of: profile) == [], "\(profile.name)") }
    }

    @Test func `every profile of advertisements names models and the source of its tests`() {
        for profile in registry.profiles where profile.isForAdvertisements {
            #expect(!profile.models.isEmpty || profile.name == "leaone", "\(profile.name)")
            #expect(!ProfileTools.sources(of: profile).isEmpty, "\(profile.name)")
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `random advertisements are recognised or not, and never trap`() {
        var generator = SplitMix(state: 3)
        let companies = registry.profiles.flatMap(\.models).compactMap(\.source).flatMap { $0.sources ?? [] }
        for round in 0..<2000 {
            let octets = generator.payload(atMost: 40)
            var companiesData: [UInt16: [UInt8]] = [:]
            var servicesData: [BluetoothUUID: [UInt8]] = [:]
            switch companies[round % companies.count] {
            case .manufacturer(let company): companiesData[company] = octets
            case .serviceData(let uuid): servicesData[uuid] = octets
            }
            let name = String(decoding: octets, as: UTF8.self)
            _ = registry.candidates(
                AdvertisedTraits(name: name, manufacturerData: companiesData, serviceData: servicesData)
            )
        }
    }

    @Test func `no acceleration has the unit g, which Home Assistant reads as grams`() {
        let metrics = registry.profiles.flatMap(\.streams).flatMap(\.metrics)
        let units = Set(metrics.filter { $0.name.hasPrefix("acceleration") }.compactMap(\.unit))
        #expect(units == ["gₙ", "m/s²"])
    }

    @Test func `every stream has at least two tests, and all pass`() {
        for profile in registry.profiles {
            let results = ProfileTools.runVectors(of: profile)
            #expect(results.compactMap { $0.failure.map { "\(profile.name) \($0)" } } == [])
            for stream in profile.streams.map(\.name) {
                #expect(results.count { $0.stream == stream } >= 2, "\(profile.name) \(stream)")
            }
        }
    }

    @Test func `truncated test payloads are decoded or rejected`() {
        for profile in registry.profiles {
            let decoder = profile.makeDecoder()
            for result in ProfileTools.runVectors(of: profile) {
                let index = ProfileTools.characteristic(result.stream, of: profile) ?? 0
                let payloads = result.hex.split(separator: ",").compactMap { Hexadecimal.octets($0) }
                for payload in payloads {
                    for length in 0...payload.count {
                        decoder.tryDecode(Array(payload[..<length]), characteristic: index)
                    }
                }
            }
        }
    }

    @Test func `the resistance range gives the width of the resistance`() throws {
        let profile = try #require(registry["fitness-machine"])
        let range = try #require(ProfileTools.characteristic("resistance_range", of: profile))
        let data: [(stream: String, hex: String, wide: Double)] = [
            ("indoor_bike", "21 00 0A 07", 1802), ("cross_trainer", "81 00 00 0A 07", 180.2),
            ("rower", "81 00 0A 07", 1802),
        ]
        for (stream, hex, wide) in data {
            let index = try #require(ProfileTools.characteristic(stream, of: profile))
            let resistance = try #require(profile.streams[index].metrics.firstIndex { $0.name == "resistance" })
            for (supported, value) in [(nil, wide), ("00 0A 01", 100), ("00 00 64 00 0A 00", wide)]
                as [(String?, Double)]
            {
                let decoder = profile.makeDecoder()
                if let octets = supported.flatMap({ Hexadecimal.octets($0) }) {
                    decoder.tryDecode(octets, characteristic: range)
                }
                var samples: [Sample] = []
                let octets = try #require(Hexadecimal.octets(hex))
                try decoder.decode(octets.span, characteristic: index, into: &samples)
                #expect(
                    samples.first { $0.metric == resistance }?.value.number == value,
                    "\(stream) \(supported ?? "")"
                )
            }
        }
    }

    @Test(arguments: [
        ("04 00", "0000002F 04 04 1200 0080", ["second_fraction"]),
        ("42 05", "0000002F 04 04 1200 0100002F 0500 0700 0080", ["user_time", "clock_drift"]),
        ("FFFF 01 00", "1234 0000002F 04 04 1200", []),
    ])
    func `the features of a device's clock tell which fields its time has`(
        features: String,
        hex: String,
        names: [String]
    ) throws {
        let profile = try #require(registry["device-time"])
        let index = try #require(ProfileTools.characteristic("device_time", of: profile))
        let first = try #require(ProfileTools.characteristic("device_time_features", of: profile))
        let decoder = profile.makeDecoder()
        decoder.tryDecode(try #require(Hexadecimal.octets(features)), characteristic: first)
        var samples: [Sample] = []
        let octets = try #require(Hexadecimal.octets(hex))
        try decoder.decode(octets.span, characteristic: index, into: &samples)
        let metrics = samples.map { profile.streams[index].metrics[$0.metric].name }
        #expect(metrics == ["time_zone", "daylight_saving", "device_time", "time_status"] + names)
        #expect(samples[2].value == .integer(1_735_213_952))
    }

    @Test func `the wheel circumference is an option`() throws {
        for (name, stream, hex) in [
            ("cycling-speed-and-cadence", "cycling", ["01 00 00 00 00 00 00", "01 04 00 00 00 00 04"]),
            ("cycling-power", "cycling_power", ["10 00 00 00 00 00 00 00 00 00", "10 00 00 00 04 00 00 00 00 08"]),
        ] {
            let profile = try #require(registry[name])
            let index = try #require(ProfileTools.characteristic(stream, of: profile))
            let speed = try #require(profile.streams[index].metrics.firstIndex { $0.name == "speed" })
            for (options, value) in [([:], 8.42), (["wheel_circumference": 2000], 8)] as [([String: Int64], Double)] {
                let decoder = profile.configured(with: options).makeDecoder()
                var samples: [Sample] = []
                for hex in hex {
                    samples = []
                    let octets = try #require(Hexadecimal.octets(hex))
                    try decoder.decode(octets.span, characteristic: index, into: &samples)
                }
                #expect(samples.first { $0.metric == speed }?.value == .real(value))
            }
        }
    }

    @Test func `every characteristic of an assigned service has an assigned name`() {
        let assigned = registry.profiles.filter { $0.services.allSatisfy { $0.assignedName != nil } }
        #expect(assigned.count >= 20)
        for profile in assigned {
            for characteristic in profile.characteristics { #expect(characteristic.uuid.assignedName != nil) }
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `random payloads never trap`() {
        var generator = SplitMix(state: 1)
        for profile in registry.profiles {
            let decoder = profile.makeDecoder()
            for index in profile.streams.indices {
                for octet in [0x00, 0xFF] as [UInt8] {
                    for length in 0..<24 {
                        decoder.tryDecode(Array(repeating: octet, count: length), characteristic: index)
                    }
                }
                for _ in 0..<200 { decoder.tryDecode(generator.payload(atMost: 24), characteristic: index) }
            }
        }
    }
}

extension ModelDescriptor {
    /// An advertisement of the model; bytes and characters that may be any are EE and x.
    fileprivate var exampleTraits: AdvertisedTraits {
        let words = beginning?.description.split(separator: " ") ?? []
        var octets = words.map { UInt8($0.replacing("?", with: "E"), radix: 16) ?? 0xEE }
        if let length { octets += Array(repeating: 0xEE, count: max(0, length.lowerBound - octets.count)) }
        var (companies, services): ([UInt16: [UInt8]], [BluetoothUUID: [UInt8]]) = ([:], [:])
        switch source {
        case .manufacturer(let company): companies[company] = octets
        case .manufacturers(let all): companies[all.first ?? 0] = Array(octets.dropFirst(2))
        case .anyManufacturer:
            let company = octets.prefix(2).reversed().reduce(0) { $0 << 8 | UInt16($1) }
            companies[company] = Array(octets.dropFirst(2))
        case .serviceData(let uuid): services[uuid] = octets
        case nil: break
        }
        return AdvertisedTraits(
            name: names.first.map { $0.description.replacing("*", with: "x") },
            services: service.map { [$0] } ?? [],
            manufacturerData: companies,
            serviceData: services
        )
    }
}
