import GattherdGATT
import GattherdModel

/// Reads advertisements from a trace of HCI packets in the format btsnoop, as `btmon -w` and Android write it.
package struct SnoopReader {
    /// The first bytes of such a file.
    package static let magic = Array("btsnoop\0".utf8)
    /// The number of bytes before the first record, and before the data of each record.
    package static let (headerSize, recordSize) = (16, 24)

    /// The longest record that is read.
    private static let longestRecord = 65_600
    /// Microseconds from the year 0 to 1970.
    private static let epoch: Int64 = 0x00DC_DDB3_0F2F_8000

    private enum Format: UInt64 {
        /// Packets without an octet for their type.
        case plain = 1001
        /// The link type of packets that begin with an octet for their type.
        case uart = 1002
        /// Packets of the kernel's monitor channel.
        case monitor = 2001
    }

    private let file: String
    private let format: Format
    private var reports = AdvertisingReports()
    private var number = 0

    /// - Parameters:
    ///   - header: The first bytes of the file.
    ///   - file: The file's name, for errors.
    /// - Throws: ``CaptureError`` for another format.
    package init(_ header: [UInt8], file: String) throws(CaptureError) {
        self.file = file
        guard header.count == Self.headerSize, header.starts(with: Self.magic) else {
            throw CaptureError(file, reason: "the header of the btsnoop file is not complete")
        }
        guard Self.number(header[8..<12]) == 1, let format = Format(rawValue: Self.number(header[12..<16])) else {
            throw CaptureError(
                file,
                reason: "the btsnoop file has the data link type \(Self.number(header[12..<16])); "
                    + "expected 1001, 1002 or 2001 in version 1"
            )
        }
        self.format = format
    }

    /// Returns the number of bytes that follow the header of a record.
    package mutating func size(of record: [UInt8]) throws(CaptureError) -> Int {
        number += 1
        guard record.count == Self.recordSize else { throw failure("is not complete") }
        let size = Int(Self.number(record[4..<8]))
        guard size <= Self.longestRecord else { throw failure("has \(size) bytes; a packet has at most 64 KiB") }
        return size
    }

    /// Returns the advertisements of a record.
    package mutating func advertisements(
        _ record: [UInt8],
        _ packet: [UInt8]
    ) throws(CaptureError) -> [CapturedAdvertisement] {
        guard packet.count == Int(Self.number(record[4..<8])) else { throw failure("is not complete") }
        guard let event = event(Self.number(record[8..<12]), packet) else { return [] }
        let time = Int64(bitPattern: Self.number(record[16..<24])).subtractingReportingOverflow(Self.epoch)
        do throws(PayloadError) {
            return try reports.advertisements(in: event, at: Timestamp(microseconds: time.partialValue))
        } catch {
            throw failure("has an HCI event that is not complete: \(error)")
        }
    }

    /// Returns the HCI event of a packet; `nil` for other packets.
    private func event(_ flags: UInt64, _ packet: [UInt8]) -> [UInt8]? {
        switch format {
        case .plain: flags & 3 == 3 ? packet : nil
        case .uart: packet.first == 0x04 ? Array(packet.dropFirst()) : nil
        case .monitor: flags & 0xFFFF == 3 ? packet : nil
        }
    }

    private func failure(_ problem: String) -> CaptureError {
        CaptureError(file, reason: "packet \(number) of the trace \(problem)")
    }

    /// Returns a big-endian number.
    private static func number(_ octets: ArraySlice<UInt8>) -> UInt64 { octets.reduce(0) { $0 << 8 | UInt64($1) } }
}
