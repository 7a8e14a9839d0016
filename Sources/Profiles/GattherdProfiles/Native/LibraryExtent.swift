/// How far the headers of a shared library reach into its file.
///
/// The loader maps what they speak of without a look at the file's size, and touching what is not there ends the
/// process with SIGBUS: a library of which only the beginning has been copied must never come to it.
struct LibraryExtent {
    /// ELF, of 64 bits, the lowest octet first.
    private static let identification: [UInt8] = [0x7F, 0x45, 0x4C, 0x46, 2, 1]
    private static let headerLength = 64

    /// Where the last of what the headers speak of ends, in octets; 0 when the file has no such headers, which the
    /// loader finds out by itself.
    let end: UInt64

    /// - Parameters:
    ///   - path: The library.
    ///   - size: That of its file, in octets.
    /// - Throws: What the system says when it cannot be read.
    init(of path: String, size: UInt64) throws(FileFault) {
        let header = LittleEndian(try FolderReader.octets(of: path, limit: Self.headerLength - 1))
        guard header.octets.count == Self.headerLength, header.octets.starts(with: Self.identification) else {
            end = 0
            return
        }
        let programs = HeaderTable(
            start: header.number(at: 32, 8),
            width: header.number(at: 54, 2),
            header.number(at: 56, 2)
        )
        let sections = HeaderTable(
            start: header.number(at: 40, 8),
            width: header.number(at: 58, 2),
            header.number(at: 60, 2)
        )
        let tables = max(programs.end, sections.end)
        end = tables > size ? tables : max(tables, try Self.segments(programs, of: path))
    }

    /// Where the last segment ends.
    private static func segments(_ table: HeaderTable, of path: String) throws(FileFault) -> UInt64 {
        guard table.length > 0 else { return 0 }
        let octets = try FolderReader.octets(of: path, from: table.start, limit: Int(table.length) - 1)
        let entries = LittleEndian(octets)
        let starts = stride(from: 0, through: octets.count - 40, by: max(1, Int(table.width)))
        return starts.map { entries.number(at: $0 + 8, 8).adding(entries.number(at: $0 + 32, 8)) }.max() ?? 0
    }
}

/// Headers that stand one after the other.
private struct HeaderTable {
    let start: UInt64
    /// Of one header, in octets.
    let width: UInt64
    let length: UInt64

    init(start: UInt64, width: UInt64, _ count: UInt64) {
        (self.start, self.width) = (start, width)
        length = width * count
    }

    var end: UInt64 { length == 0 ? 0 : start.adding(length) }
}

/// Numbers in octets, the lowest first.
private struct LittleEndian {
    let octets: [UInt8]

    init(_ octets: [UInt8]) {
        self.octets = octets
    }

    func number(at position: Int, _ width: Int) -> UInt64 {
        octets[position..<position + width].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}

extension UInt64 {
    /// The sum, or the largest number: a file can say anything.
    fileprivate func adding(_ other: UInt64) -> UInt64 {
        let (sum, isTooLarge) = addingReportingOverflow(other)
        return isTooLarge ? .max : sum
    }
}
