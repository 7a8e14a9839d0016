import FoundationEssentials
import TestKit
import Testing

/// The code of docs/transducers.md.
@Suite struct TransducerPageTests {
    private func lines(_ text: some StringProtocol) -> [Substring] {
        text.split(separator: "\n").map { line in Substring(line.drop { $0 == " " }) }.filter { !$0.isEmpty }
    }

    @Test func `the code blocks of the page are compiled`() throws {
        let page = try String(contentsOf: Checkout.root.appending(path: "docs/transducers.md"), encoding: .utf8)
        let blocks = page.split(separator: "```swift\n").dropFirst().compactMap { $0.split(separator: "```").first }
        #expect(blocks.count >= 5)
        let folder = Checkout.root.appending(path: "Tests/Base/TransducerExamples")
        let sources = try FileManager.default.contentsOfDirectory(atPath: folder.path).map { name in
            lines(try String(contentsOf: folder.appending(path: name), encoding: .utf8))
        }
        for block in blocks {
            let wanted = lines(block)
            let isThere = sources.contains { source in
                source.indices.contains { source[$0...].starts(with: wanted) }
            }
            #expect(isThere, "\(block)")
        }
    }
}
