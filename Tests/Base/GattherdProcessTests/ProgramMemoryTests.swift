import Foundation
import GattherdProcess
import Glibc
import Testing

@Suite struct ProgramMemoryTests {
    @Test func `large blocks return to the kernel as soon as they are freed`() throws {
        ProgramMemory.returnLargeBlocks()
        // By default this block would raise the threshold.
        _ = [UInt8](repeating: 1, count: 1 << 20)
        // Many: the first blocks reuse memory that other tests have freed.
        var blocks = (0..<512).map { _ in [UInt8](repeating: 1, count: 1 << 19) }
        let before = try resident("RssAnon")
        for index in blocks.indices where index % 8 != 7 { blocks[index] = [] }
        let after = try resident("RssAnon")
        #expect(before - after > 65_536, "\(before) to \(after) KiB")
        #expect(blocks.reduce(0) { $0 + $1.count } == 64 << 19)
    }

    @Test func `free pages between used blocks return to the kernel`() throws {
        var blocks = (0..<4000).map { _ in [UInt8](repeating: 1, count: 16_384) }
        for index in blocks.indices where index % 100 != 99 { blocks[index] = [] }
        let before = try resident("RssAnon")
        ProgramMemory.release()
        let after = try resident("RssAnon")
        #expect(before - after > 32_768, "\(before) to \(after) KiB")
        #expect(blocks.reduce(0) { $0 + $1.count } == 40 * 16_384)
    }

    /// A line of `/proc/self/status`, in KiB.
    private func resident(_ kind: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(kind + ":") })
        return try #require(line.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    }
}
