import Foundation
import GattherdProcess
import Glibc
import Testing

@Suite struct ProgramMemoryTests {
    @Test func `What is released is not resident, and can be used all the same`() throws {
        // What looking needs is there the second time.
        _ = try resident("RssFile")
        let before = try resident("RssFile")
        ProgramMemory.release()
        let after = try resident("RssFile")
        #expect(after < before, "\(after) of \(before) KiB")
        #expect(String(decoding: try JSONSerialization.data(withJSONObject: ["a": 1]), as: UTF8.self) == #"{"a":1}"#)
    }

    @Test func `What somebody has written into a page of the program stays`() throws {
        // The first that is mapped is the program; the last octet of the identification in its header means nothing.
        let maps = try String(contentsOfFile: "/proc/self/maps", encoding: .utf8)
        let page = unsafe UnsafeMutableRawPointer(bitPattern: try #require(UInt(maps.prefix { $0 != "-" }, radix: 16)))
        let header = unsafe try #require(page)
        try #require(unsafe header.load(as: UInt32.self).bigEndian == 0x7F45_4C46)
        // Others may run code of the same page meanwhile.
        try #require(unsafe mprotect(header, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == 0)
        unsafe header.storeBytes(of: 0xA5, toByteOffset: 15, as: UInt8.self)
        try #require(unsafe mprotect(header, 4096, PROT_READ | PROT_EXEC) == 0)
        ProgramMemory.release()
        #expect(unsafe header.load(fromByteOffset: 15, as: UInt8.self) == 0xA5)
    }

    @Test func `Large blocks go back as soon as they are freed, also those between others`() throws {
        ProgramMemory.returnLargeBlocks()
        // The first that is freed would raise what counts as large.
        _ = [UInt8](repeating: 1, count: 1 << 20)
        // Many: the first of them take what other tests have left free.
        var blocks = (0..<512).map { _ in [UInt8](repeating: 1, count: 1 << 19) }
        let before = try resident("RssAnon")
        for index in blocks.indices where index % 8 != 7 { blocks[index] = [] }
        let after = try resident("RssAnon")
        #expect(before - after > 65_536, "\(before) to \(after) KiB")
        #expect(blocks.reduce(0) { $0 + $1.count } == 64 << 19)
    }

    @Test func `What the heap has free between what is in use goes back`() throws {
        var blocks = (0..<4000).map { _ in [UInt8](repeating: 1, count: 16_384) }
        for index in blocks.indices where index % 100 != 99 { blocks[index] = [] }
        let before = try resident("RssAnon")
        ProgramMemory.release()
        let after = try resident("RssAnon")
        #expect(before - after > 32_768, "\(before) to \(after) KiB")
        #expect(blocks.reduce(0) { $0 + $1.count } == 40 * 16_384)
    }

    /// In KiB.
    private func resident(_ kind: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(kind + ":") })
        return try #require(line.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    }
}
