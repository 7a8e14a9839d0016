import GattherdGATT
import GattherdModel
import Testing

@Suite struct ModelDescriptorTests {
    private static func model(_ change: (inout ModelDescriptor) -> Void) -> ModelDescriptor {
        var model = ModelDescriptor(brand: "Acme", model: "One")
        change(&model)
        return model
    }

    private static let traits = AdvertisedTraits(
        name: "Acme_0123",
        services: [0xFFF0],
        manufacturerData: [0x0059: [3, 1, 2]],
        serviceData: [0xFE95: [0x50, 0x30, 0xAA, 0x01]]
    )

    @Test func `all stated traits must match, and each adds to the weight`() throws {
        let name = Self.model { $0.names = [NamePattern("Acme_*"), NamePattern("X")] }
        let data = Self.model { ($0.source, $0.beginning) = (.manufacturer(0x59), BytePattern("03")) }
        let service = Self.model { $0.service = 0xFFF0 }
        #expect(name.weight(in: Self.traits) == 5)
        #expect(data.weight(in: Self.traits) == 3)
        #expect(service.weight(in: Self.traits) == 2)
        let all = Self.model {
            $0.names = name.names
            ($0.source, $0.beginning, $0.length) = (data.source, data.beginning, 3...3)
            $0.service = 0xFE95
        }
        #expect(all.weight(in: Self.traits) == 5 + 4 + 2)
    }

    @Test func `one other trait excludes a model`() {
        let others: [(inout ModelDescriptor) -> Void] = [
            { $0.names = [NamePattern("Acme")] },
            { $0.source = .manufacturer(0x60) },
            { ($0.source, $0.beginning) = (.manufacturer(0x59), BytePattern("04")) },
            { ($0.source, $0.length) = (.manufacturer(0x59), 4...9) },
            { $0.source = .serviceData(0xFCD2) },
            { $0.service = 0xFFF1 },
        ]
        for other in others { #expect(Self.model(other).weight(in: Self.traits) == nil) }
        #expect(Self.model { $0.names = [NamePattern("*")] }.weight(in: AdvertisedTraits()) == nil)
    }

    @Test func `data of any company begins with the identifier`() {
        let model = Self.model { ($0.source, $0.beginning) = (.anyManufacturer, BytePattern("59 00 03")) }
        #expect(model.weight(in: Self.traits) == 3)
    }

    @Test func `an endless name counts as none`() {
        let endless = AdvertisedTraits(name: String(repeating: "a", count: 249))
        #expect(endless.name == nil)
        #expect(AdvertisedTraits(name: String(repeating: "a", count: 248)).name?.count == 248)
    }

    @Test func `service data counts as an advertised service`() {
        #expect(Self.traits.services.contains(0xFE95))
    }
}
