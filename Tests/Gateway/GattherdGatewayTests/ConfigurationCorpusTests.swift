import Foundation
import GattherdConfig
import GattherdGateway
import GattherdYAML
import TestKit
import Testing

/// Configuration files as users of earlier versions wrote them.
@Suite struct ConfigurationCorpusTests {
    private static let folder = Checkout.root.appending(path: "Tests/Configurations")

    /// The versions, the oldest first.
    private static let versions: [String] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let versions = names.filter { $0.first?.isNumber == true }
        return versions.sorted { $0.compare($1, options: .numeric) == .orderedAscending }
    }()

    private static func files(_ version: String) -> [URL] {
        let place = folder.appending(path: version)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? []
        return names.filter { $0.hasSuffix(".yaml") }.sorted().map { place.appending(path: $0) }
    }

    private static let environment = ConfigEnvironment(variables: [:], hostName: "attic")

    private func read(_ source: ConfigSource) throws -> Configuration {
        var configuration = try Configuration.parse([source], in: Self.environment, outputs: OutputRegistry.definitions)
        configuration.oldKeys = []
        return configuration
    }

    private func source(_ file: URL) throws -> ConfigSource {
        ConfigSource(name: file.lastPathComponent, bytes: Array(try Data(contentsOf: file)))
    }

    @Test func `there are files of each version since the first`() {
        #expect(Self.versions.first == "0.1")
        for version in Self.versions { #expect(!Self.files(version).isEmpty, "\(version)") }
    }

    @Test(arguments: versions.flatMap(files))
    func `a file of an earlier version is valid, and keeps its meaning when it is migrated`(file: URL) throws {
        let source = try source(file)
        let migration = try ConfigMigration(source)
        let migrated = ConfigSource(name: source.name, bytes: migration.bytes)
        #expect(try read(source) == (try read(migrated)))
        #expect(try ConfigMigration(migrated).oldKeys.isEmpty)
    }

    @Test func `every key of this version is in a file of the newest one`() throws {
        let newest = try #require(Self.versions.last)
        var present: Set<String> = []
        let known = Set(ConfigReference(outputs: OutputRegistry.definitions).all.map(\.path))
        for file in Self.files(newest) {
            let root = try #require(try YAML.parse(try source(file).bytes))
            collect(root, "", known, &present)
        }
        let missing = known.subtracting(present).filter { !$0.hasSuffix("NAME") }.sorted()
        #expect(missing.isEmpty, "add to Tests/Configurations/\(newest): \(missing.joined(separator: ", "))")
    }

    /// Adds the paths of all keys of a node, in the form of the reference.
    private func collect(_ node: YAMLNode, _ path: String, _ known: Set<String>, _ present: inout Set<String>) {
        for element in node.elements ?? [] { collect(element, path, known, &present) }
        for member in node.members ?? [] {
            let own = path.isEmpty ? member.name : "\(path).\(member.name)"
            let named = known.contains(own) ? own : "\(path).NAME"
            present.insert(named)
            collect(member.value, named, known, &present)
        }
    }
}
