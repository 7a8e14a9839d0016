import BluetoothExamples
import FoundationEssentials
import GattherdBluetooth
import TestKit
import Testing

@Suite struct DocumentationTests {
    private static let root = Checkout.root
    private static let catalog = root.appending(path: "Sources/Radio/GattherdBluetooth/GattherdBluetooth.docc")

    private static func files(in folder: URL, _ ending: String) -> [URL] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(ending) }.sorted().map { folder.appending(path: $0) }
    }

    static let pages =
        files(in: catalog, ".md") + ["README.md", "docs/swift-library.md"].map { root.appending(path: $0) }

    /// The trimmed lines, without empty ones.
    private func lines(_ text: some StringProtocol) -> [Substring] {
        text.split(separator: "\n").map { line in
            line.drop { $0 == " " }
        }.filter { !$0.isEmpty }.map { Substring($0) }
    }

    private func blocks(_ page: URL) throws -> [String] {
        let text = try String(contentsOf: page, encoding: .utf8)
        return text.split(separator: "```swift\n").dropFirst().compactMap { rest in
            rest.split(separator: "```", omittingEmptySubsequences: false).first.map(String.init)
        }
    }

    @Test(arguments: pages) func `the code blocks of the documentation are compiled`(page: URL) throws {
        let folder = Self.root.appending(path: "Tests/Radio/BluetoothExamples")
        let sources = try Self.files(in: folder, ".swift").map { lines(try String(contentsOf: $0, encoding: .utf8)) }
        for block in try blocks(page) {
            let wanted = lines(block)
            let isThere = sources.contains { source in
                source.indices.contains { source[$0...].starts(with: wanted) }
            }
            #expect(isThere, "\(page.lastPathComponent):\n\(block)")
        }
    }

    @Test func `the documentation has code`() throws {
        let counts = try Self.pages.map { try blocks($0).count }
        #expect(counts.reduce(0, +) >= 20)
    }

    /// Each symbol in the table for users of CoreBluetooth has a page; docc checks the links.
    @Test func `every page is linked from the first one`() throws {
        let first = try String(contentsOf: Self.catalog.appending(path: "GattherdBluetooth.md"), encoding: .utf8)
        for page in Self.files(in: Self.catalog, ".md") where page.lastPathComponent != "GattherdBluetooth.md" {
            let name = page.deletingPathExtension().lastPathComponent
            #expect(first.contains("<doc:\(name)>"))
        }
    }
}
