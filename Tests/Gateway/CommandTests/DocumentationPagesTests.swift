import FoundationEssentials
import GattherdConfig
import GattherdGATT
import GattherdGateway
import GattherdHistory
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

@testable import gattherd

/// README.md, CONTRIBUTING.md and the pages below `docs` and `Plugins`.
@Suite struct DocumentationPagesTests {
    @Test(arguments: try DocumentationPage.all())
    func `every relative link leads to a file and a heading`(page: DocumentationPage) throws {
        for link in page.relativeLinks {
            let file = link.path.isEmpty ? page.url : page.url.deletingLastPathComponent().appending(path: link.path)
            #expect(FileManager.default.fileExists(atPath: file.standardized.path), "\(link.path)")
            guard let anchor = link.anchor else { continue }
            let headings = try DocumentationPage(file.standardized).headings
            #expect(headings.contains(anchor), "\(link.path)#\(anchor)")
        }
    }

    @Test(arguments: try DocumentationPage.all())
    func `every row of a table has as many cells as its heading`(page: DocumentationPage) {
        for table in page.tables { #expect(Set(table).count == 1, "\(table)") }
    }

    @Test(arguments: try DocumentationPage.all())
    func `every gattherd command line is understood`(page: DocumentationPage) throws {
        for words in page.commandLines {
            #expect(throws: Never.self, "gattherd \(words.joined(separator: " "))") { try parse(words) }
        }
    }

    @Test func `every advertisement in a command line is complete`() throws {
        let examples = Gattherd.commands.flatMap(\.examples).compactMap { DocumentationPage.command($0) }
        let lines = try DocumentationPage.all().flatMap(\.commandLines) + examples
        let places = lines.compactMap { words in words.firstIndex(of: "--advertisement").map { (words, $0 + 1) } }
        let texts = places.compactMap { words, place in words.indices.contains(place) ? words[place] : nil }
        let advertisements = texts.compactMap { Hexadecimal.octets($0) }
        #expect(advertisements.count >= 3)
        for octets in advertisements { #expect(AdvertisingData(octets).problem == nil, "\(octets)") }
    }

    @Test(arguments: try DocumentationPage.all())
    func `every YAML block is a valid configuration or profile`(page: DocumentationPage) throws {
        for text in page.blocks(of: "yaml") {
            if text.contains("contract:") {
                try checkProfile(text)
            } else {
                let source = ConfigSource(name: page.description, text: text)
                let environment = ConfigEnvironment(variables: [:], hostName: "host")
                #expect(throws: Never.self, "\(text)") {
                    try Configuration.parse([source], in: environment, outputs: OutputRegistry.definitions)
                }
            }
        }
    }

    @Test(arguments: try DocumentationPage.all().filter { $0.description != "docs/native-profiles.md" })
    func `every source file that a page names exists`(page: DocumentationPage) throws {
        let names = try DocumentationPage.sourceFileNames()
        for file in page.namedSourceFiles { #expect(names.contains(file), "\(file)") }
    }

    @Test func `the page of the history has every kind of event`() throws {
        let page = try String(contentsOf: Checkout.root.appending(path: "docs/history.md"), encoding: .utf8)
        let sources = Checkout.root.appending(path: "Sources")
        let files = try FileManager.default.subpathsOfDirectory(atPath: sources.path).filter { $0.hasSuffix(".swift") }
        let kinds = try files.flatMap { file in
            try String(contentsOf: sources.appending(path: file), encoding: .utf8)
                .matches(of: /record\([^"]{0,80}\bkind: "(\w+)"/).map { String($0.1) }
        }
        #expect(Set(kinds).count >= 14, "\(kinds)")
        for kind in Set(kinds) { #expect(page.contains("\n| `\(kind)` | "), "\(kind)") }
    }

    @Test func `every SQL query runs on a history`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("gattherd.db")
        try makeHistory(path)
        let queries = try DocumentationPage.all().flatMap(\.queries)
        #expect(queries.count >= 4)
        for query in queries { _ = try await SQLiteShell(path).text(query) }
    }

    private static func nativeProfiles() throws -> DocumentationPage {
        try DocumentationPage(Checkout.root.appending(path: "docs/native-profiles.md"))
    }

    @Test(arguments: [
        ("c", "soil-probe"), ("swift", "soil-probe"), ("swift", "flow-meter"), ("c", "garden-beacon"),
        ("swift", "garden-beacon"),
    ])
    func `the native profiles of the documentation load and pass their tests`(
        language: String,
        name: String
    ) async throws {
        let blocks = try Self.nativeProfiles().blocks(of: language)
        let source = try #require(blocks.first { $0.contains("name = \"\(name)\"") })
        let folder = try TemporaryFolder()
        let registry = try ProfileTools.load(try await build(source, language, in: folder))
        let profile = try #require(registry.profiles.first, "\(registry.refusals)")
        #expect(profile.name == name)
        #expect(ProfileTools.runVectors(of: profile).map(\.failure) == [nil, nil])
        #expect(profile.tasks.count == (name == "soil-probe" ? 1 : 0))
        #expect(profile.isForAdvertisements == (name == "garden-beacon"))
        #expect(profile.controls.map(\.name) == (name == "flow-meter" ? ["interval"] : []))
    }

    @Test func `the C examples equal those in the documentation`() throws {
        let blocks = try Self.nativeProfiles().blocks(of: "c")
        let files = try ["soil-probe", "garden-beacon"].map { name in
            try String(contentsOf: Checkout.root.appending(path: "Plugins/Examples/\(name).c"), encoding: .utf8)
        }
        let trimmed = { (text: String) in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        }
        #expect(blocks.map { trimmed($0).filter { !$0.isEmpty } } == files.map { trimmed($0).filter { !$0.isEmpty } })
    }

    @Test func `the explanation of the documentation is the one that is printed`() async throws {
        let page = try Self.nativeProfiles()
        let folder = try TemporaryFolder()
        let path = try await build(try #require(page.blocks(of: "c").first), "c", in: folder)
        let profile = try #require(try ProfileTools.load(path).profiles.first)
        let text = ExplanationText(SampleDependence([[0xC4, 0x09, 0x2D, 0]], stream: 0, of: profile), profile, 0).text
        let lines = text.split(separator: "\n").dropFirst().map { "    " + $0 }
        let documented = try String(contentsOf: page.url, encoding: .utf8).split(separator: "\n").map(String.init)
        for line in lines { #expect(documented.contains(line), "\(line)") }
    }

    private func build(_ source: String, _ language: String, in folder: TemporaryFolder) async throws -> String {
        guard language == "swift" else {
            return try await SharedLibrary.build(source, to: "plugin.so", in: folder)
        }
        let types = ["SoilProbeProfile", "FlowMeterProfile", "GardenBeaconProfile"]
        let type = try #require(types.first { source.contains("struct \($0):") })
        let input = try folder.write(source + export(of: type), to: "Plugin.swift")
        return try await SharedLibrary.buildSwift([input], to: "libPlugin.so", in: folder)
    }

    /// The entry point that `gattherd profile new --swift` writes into its package.
    private func export(of type: String) -> String {
        """

        private let exported = ExportedProfile(\(type).self)

        @c(gattherd_profile_v1)
        public func gattherdProfile(hostMinor: UInt32) -> UnsafeRawPointer { unsafe exported.table }
        """
    }

    @Test func `the pages have links, tables, commands and YAML to check`() throws {
        let pages = try DocumentationPage.all()
        #expect(pages.count > 20)
        #expect(pages.flatMap(\.relativeLinks).count > 60)
        #expect(pages.flatMap(\.tables).count > 30)
        #expect(pages.flatMap(\.commandLines).count > 60)
        #expect(pages.flatMap { $0.blocks(of: "yaml") }.count > 8)
    }

    private func parse(_ words: [String]) throws {
        for count in [2, 1] where words.count >= count {
            let name = words.prefix(count).joined(separator: " ")
            guard let command = Gattherd.commands.first(where: { $0.name == name }) else { continue }
            let rest = Array(words.dropFirst(count))
            // A sentence may mention a command by its name alone.
            if !rest.isEmpty { _ = try Arguments(rest, for: command) }
            return
        }
        throw CommandFailure(.usage, "there is no such command")
    }

    private func checkProfile(_ text: String) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(text, to: "profile.yaml")
        let registry = try ProfileTools.load(path)
        #expect(registry.refusals.isEmpty, "\(registry.refusals)\n\(text)")
        let results = registry.profiles.flatMap { ProfileTools.runVectors(of: $0) }
        #expect(!results.isEmpty && results.allSatisfy { $0.failure == nil }, "\(text)")
    }

    private func makeHistory(_ path: String) throws {
        let series = HistorySeries(
            device: "strap",
            profile: "heart-rate",
            stream: "heart_rate",
            metric: "heart_rate",
            unit: "bpm",
            source: "notify",
            kind: .gauge,
            isRepeated: false
        )
        let target = try HistoryImport(path: path)
        let rows = (0..<100 as Range<Int64>).map { number in
            let time = Timestamp(microseconds: 1_760_000_000_000_000 + number * 1_000_000)
            return HistoryRow(seq: 0, time: time, series: series, value: .integer(60 + number % 40))
        }
        try target.add(rows)
        try target.finish()
    }
}
