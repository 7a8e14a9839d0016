/// The extent of a shared library according to its headers.
///
/// The loader maps segments without a check of the file's size. An access beyond the end of a truncated file raises
/// SIGBUS, so an incomplete copy of a library must not be loaded.
struct LibraryExtent {
    /// The identification of 64-bit little-endian ELF.
    private static let identification: [UInt8] = [0x7F, 0x45, 0x4C, 0x46, 2, 1]
    private static let headerLength = 64

    /// The end of the last segment or header in bytes; 0 if the file has no such headers, which the
    /// loader reports.
    let end: UInt64

    /// - Parameters:
    ///   - path: The library's path.
    ///   - size: The file's size in bytes.
    /// - Throws: ``FileFault`` if it cannot be read.
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

    /// Returns the end of the last segment.
    private static func segments(_ table: HeaderTable, of path: String) throws(FileFault) -> UInt64 {
        guard table.length > 0 else { return 0 }
        let octets = try FolderReader.octets(of: path, from: table.start, limit: Int(table.length) - 1)
        let entries = LittleEndian(octets)
        let starts = stride(from: 0, through: octets.count - 40, by: max(1, Int(table.width)))
        return starts.map { entries.number(at: $0 + 8, 8).adding(entries.number(at: $0 + 32, 8)) }.max() ?? 0
    }
}

/// A table of equally long headers.
private struct HeaderTable {
    let start: UInt64
    /// The width of one header in bytes.
    let width: UInt64
    let length: UInt64

    init(start: UInt64, width: UInt64, _ count: UInt64) {
        (self.start, self.width) = (start, width)
        length = width * count
    }

    var end: UInt64 { length == 0 ? 0 : start.adding(length) }
}

/// A reader of little-endian numbers.
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
    /// Returns the sum, clamped: the file may contain any number.
    fileprivate func adding(_ other: UInt64) -> UInt64 {
        let (sum, isTooLarge) = addingReportingOverflow(other)
        return isTooLarge ? .max : sum
    }
}
