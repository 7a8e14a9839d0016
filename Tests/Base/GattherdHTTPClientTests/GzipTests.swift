import Foundation
import GattherdHTTPClient
import TestKit
import Testing

@Suite(.timeLimit(.minutes(1))) struct GzipTests {
    @Test func `gzip restores what was compressed`() async throws {
        let folder = try TemporaryFolder()
        let random = (0..<100_000).map { _ in UInt8.random(in: 0...255) }
        let text = Array(String(repeating: "heart_rate,device=strap bpm=72 1700000000000000000\n", count: 2000).utf8)
        for bytes in [[], [0], text, random] {
            let compressed = try #require(Gzip.compress(bytes))
            let file = folder.file("body.gz")
            try Data(compressed).write(to: URL(filePath: file))
            let (code, _) = try await Programs.run("gzip", ["-d", "-k", "-f", file])
            #expect(code == 0)
            #expect(try Data(contentsOf: URL(filePath: folder.file("body"))) == Data(bytes))
        }
        #expect(try #require(Gzip.compress(text)).count < text.count / 20)
    }
}
