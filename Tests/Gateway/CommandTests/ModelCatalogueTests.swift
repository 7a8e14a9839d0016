import FoundationEssentials
import GattherdProfiles
import TestKit
import Testing

@testable import gattherd

/// The page of the models that the included profiles recognise.
@Suite struct ModelCatalogueTests {
    private static let page = Checkout.root.appending(path: "docs/catalogue.md")

    private static func registry() throws -> ProfileRegistry {
        try ProfileRegistry.load(paths: [Checkout.root.appending(path: "Plugins/Standard").path])
    }

    /// `make catalogue` sets GATTHERD_WRITE_CATALOGUE, which makes this test write the page.
    @Test func `the catalogue names all models of the included profiles`() throws {
        let text = ModelCatalogue(try Self.registry()).page
        if ProcessInfo.processInfo.environment["GATTHERD_WRITE_CATALOGUE"] != nil {
            try Data(text.utf8).write(to: Self.page)
        }
        let page = try String(contentsOf: Self.page, encoding: .utf8)
        #expect(page == text, "docs/catalogue.md is out of date; run: make catalogue")
    }

    @Test func `a model that two profiles serve counts once`() throws {
        let table = ModelCatalogue(try Self.registry(), matching: "Leagend BM2").table
        #expect(table.contains(" bm2 ") && table.contains(" bm2-beacon "))
        #expect(table.hasSuffix("\n1 model"))
    }

    @Test func `a text selects models by brand, name and profile`() throws {
        let table = ModelCatalogue(try Self.registry(), matching: "GOVEE h507").table
        #expect(table.contains("H5075"))
        #expect(!table.contains("Xiaomi"))
        #expect(table.hasSuffix("\n4 models"))
        #expect(ModelCatalogue(try Self.registry(), matching: "no such brand").table == "0 models")
    }
}
