import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// The key `identify`, and the recognition of peripherals.
struct IdentificationTests {
    private static func profile(_ name: String, _ models: String, frame: String = "manufacturer: 0x0059") -> String {
        """
        contract: 1
        profile: \(name)
        title: The \(name)
        tested: [a decoder, a document]
        identify: [\(models)]
        advertisement:
          - \(frame)
            stream: thing
            fields: [{metric: x, type: u8}]
        """
    }

    private static func registry(_ texts: [String: String]) throws -> ProfileRegistry {
        let folder = try TemporaryFolder()
        for (name, text) in texts { try folder.write(text, to: name + ".yaml") }
        let registry = try ProfileRegistry.load(paths: [folder.path])
        #expect(registry.refusals.map(\.description) == [])
        return registry
    }

    @Test func `the model with the most identifying bytes is meant`() throws {
        let registry = try Self.registry([
            "a": Self.profile("a", "{brand: A, model: any, manufacturer: 0x0059}"),
            "b": Self.profile("b", "{brand: B, model: five, manufacturer: 0x0059, begins: 05, key: ask B}"),
        ])
        let any = registry.identify(AdvertisedTraits(manufacturerData: [0x59: [1]]))
        let five = registry.identify(AdvertisedTraits(manufacturerData: [0x59: [5]]))
        #expect(any?.profile == "a")
        #expect(any?.name == "A any")
        #expect(five?.profile == "b")
        #expect(five?.model?.key == "ask B")
        #expect(five?.isForAdvertisements == true)
        #expect(registry.identify(AdvertisedTraits(manufacturerData: [0x60: [5]])) == nil)
        #expect(ProfileTools.sources(of: try #require(registry["a"])) == ["a decoder", "a document"])
    }

    @Test func `a profile that decodes the data is proposed by its title`() throws {
        let registry = try Self.registry(["a": Self.profile("a", "")])
        let identity = registry.identify(AdvertisedTraits(manufacturerData: [0x59: [1]]))
        #expect(identity?.name == "The a")
        #expect(identity?.model == nil)
    }

    @Test func `a frame that fits all data proposes nothing`() throws {
        let registry = try Self.registry(["a": Self.profile("a", "", frame: "manufacturer: any")])
        #expect(registry.identify(AdvertisedTraits(manufacturerData: [0x59: [1]])) == nil)
    }

    @Test func `a service and data of any company identify a model together`() throws {
        let model = "{brand: A, model: five, service: aa20, manufacturer: any, begins: '?? ?? 05'}"
        let registry = try Self.registry(["a": Self.profile("a", model, frame: "manufacturer: any")])
        let five = AdvertisedTraits(services: [0xAA20], manufacturerData: [0x59: [5]])
        #expect(registry.identify(five)?.name == "A five")
        #expect(registry.identify(AdvertisedTraits(services: [0xAA20], manufacturerData: [0x59: [6]])) == nil)
        #expect(registry.identify(AdvertisedTraits(manufacturerData: [0x59: [5]])) == nil)
    }

    @Test func `two fixed bytes identify a model among the data of any company`() throws {
        let model = "{brand: A, model: five, manufacturer: any, begins: '?? EC 4?', length: 4}"
        let registry = try Self.registry(["a": Self.profile("a", model, frame: "manufacturer: any")])
        #expect(registry.identify(AdvertisedTraits(manufacturerData: [0xEC01: [0x4F, 1]]))?.name == "A five")
        #expect(registry.identify(AdvertisedTraits(manufacturerData: [0xECFF: [0x40, 1]]))?.name == "A five")
        for (company, octets) in [(0xED01, [0x4F, 1]), (0xEC01, [0x5F, 1]), (0xEC01, [0x4F])] as [(UInt16, [UInt8])] {
            #expect(registry.identify(AdvertisedTraits(manufacturerData: [company: octets])) == nil)
        }
    }

    @Test func `all profiles that decode the data are candidates, unless a model is known`() throws {
        let registry = try Self.registry([
            "a": Self.profile("a", ""), "b": Self.profile("b", "{brand: B, model: five, name: five}"),
        ])
        let traits = AdvertisedTraits(manufacturerData: [0x59: [1]])
        #expect(registry.candidates(traits).map(\.profile) == ["a", "b"])
        let five = AdvertisedTraits(name: "five", manufacturerData: [0x59: [1]])
        #expect(registry.candidates(five).map(\.name) == ["B five"])
        #expect(registry.candidates(AdvertisedTraits()).isEmpty)
    }

    @Test(arguments: [
        ("{model: x, name: y}", "5:12: a model needs 'brand': a text of 1 to 255 bytes without control characters"),
        ("{brand: a, model: x}", "5:12: a model needs 'name', 'manufacturer', 'service_data' or 'service'"),
        ("{brand: a, model: x, name: y, begins: 00}", "5:42: 'begins' needs 'manufacturer' or 'service_data'"),
        ("{brand: a, model: x, manufacturer: any}", "5:33: data of any company identifies nothing"),
        ("{brand: a, model: x, manufacturer: any, begins: '?? ?? 05'}", "5:33: data of any company identifies nothing"),
        ("{brand: a, model: x, name: [y, '*']}", "5:33: the name '*' identifies nothing"),
        ("{brand: a, model: x, name: '??*'}", "5:33: the name '??*' identifies nothing"),
        ("{brand: a, model: x, nam: y}", "5:33: a model has no key 'nam'; did you mean 'name'?"),
        ("{brand: a, model: x, name: y, active_scan: 1}", "5:55: '1' is invalid; expected one of true, false"),
    ])
    func `a mistake is reported at its place`(model: String, error: String) throws {
        let errors = try DeclarativeText.errors(Self.profile("a", model))
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }

    @Test(arguments: [
        ("service_data: fff9", true), ("service_data: fff9, length: 9", true),
        ("service_data: fff9, length: 10", false),
        ("service_data: fff9, begins: 21", true), ("service_data: fff9, begins: 22", false),
        ("manufacturer: 0xFFFF, length: 10", true), ("name: Attic", true),
    ])
    func `models whose data no frame accepts are found`(traits: String, isDecoded: Bool) throws {
        let profile = try DeclarativeText.compile(
            """
            contract: 1
            profile: attic
            identify: [{brand: Acme, model: Attic, \(traits)}]
            advertisement:
              - {service_data: fff9, begins: 21, length: 9, stream: attic, fields: [{metric: x, type: u8}]}
            """
        )
        #expect(ProfileTools.undecodedModels(of: profile).isEmpty == isDecoded)
    }
}
