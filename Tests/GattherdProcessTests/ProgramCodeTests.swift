import Foundation
import GattherdProcess
import Testing

@Suite struct ProgramCodeTests {
    @Test func `What is released is not resident, and can be used all the same`() throws {
        // What looking needs is there the second time.
        _ = try residentFilePages()
        let before = try residentFilePages()
        ProgramCode.release()
        let after = try residentFilePages()
        #expect(after < before, "\(after) of \(before) KiB")
        #expect(String(decoding: try JSONSerialization.data(withJSONObject: ["a": 1]), as: UTF8.self) == #"{"a":1}"#)
    }

    /// In KiB.
    private func residentFilePages() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        return try #require(status.firstMatch(of: /RssFile:\s+([0-9]+) kB/).flatMap { Int($0.1) })
    }
}
