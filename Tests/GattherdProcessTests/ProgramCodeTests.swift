import Foundation
import GattherdProcess
import Glibc
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
        ProgramCode.release()
        #expect(unsafe header.load(fromByteOffset: 15, as: UInt8.self) == 0xA5)
    }

    /// In KiB.
    private func residentFilePages() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        return try #require(status.firstMatch(of: /RssFile:\s+([0-9]+) kB/).flatMap { Int($0.1) })
    }
}
