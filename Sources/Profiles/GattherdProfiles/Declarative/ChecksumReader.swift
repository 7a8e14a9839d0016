import GattherdModel
import GattherdYAML

/// Reads `check` of received payloads and of written bytes.
struct ChecksumReader {
    private static let kinds = Checksum.Kind.allCases.map { (word: $0.rawValue, value: $0) }
    private static let orders = [(word: "le", value: false), (word: "be", value: true)]

    private let reader: MappingReader

    /// Creates a reader of the mapping `check`; `nil` if it is absent or no mapping.
    init?(_ stream: MappingReader) {
        guard let node = stream.node("check") else { return nil }
        guard let reader = MappingReader(node, .check, findings: stream.findings) else { return nil }
        self.reader = reader
    }

    /// Returns `nil` after a reported error.
    func checksum() -> Checksum? {
        defer { reader.finish() }
        guard let kind = reader.required("kind", .choice(Self.kinds)) else {
            reader.abandon()
            return nil
        }
        if !kind.isCRC { reader.forbid(["poly", "reflect"], "is for crc8, crc16 and crc32") }
        let bits: ClosedRange<Int64> = 0...(1 << Int64(8 * kind.width)) - 1
        let standard = Self.standard(kind)
        let number = { (key: String, value: UInt32) in
            reader.value(key, .integer(bits)).map { UInt32(truncatingIfNeeded: $0) } ?? value
        }
        var checksum = standard
        checksum.polynomial = number("poly", standard.polynomial)
        checksum.start = number("init", standard.start)
        checksum.inversion = number("xor", standard.inversion)
        checksum.isReflected = reader.value("reflect", .boolean) ?? standard.isReflected
        checksum.isBigEndian = reader.value("order", .choice(Self.orders)) ?? false
        checksum.place = place(kind.width) ?? standard.place
        if checksum.place.first == 0, !reader.has("bytes") {
            reader.report("no bytes come before the checksum; write which it covers, such as 'bytes: \(kind.width)..'")
        }
        let bytes = ByteSlice(first: 0, end: checksum.place.first)
        checksum.bytes = reader.value("bytes", .slice) ?? bytes
        return checksum
    }

    /// Reads `at`, the place of the first byte of the checksum.
    private func place(_ width: Int) -> ByteSlice? {
        guard let first = reader.value("at", .integer(-512...511)).map({ Int($0) }) else { return nil }
        let end = first + width
        if first < 0, end > 0 { reader.report("a checksum of \(width) bytes begins at -\(width) or before", at: "at") }
        return ByteSlice(first: first, end: first < 0 && end >= 0 ? nil : end)
    }

    /// The usual parameters; CRC-16/CCITT-FALSE and that of Ethernet.
    private static func standard(_ kind: Checksum.Kind) -> Checksum {
        switch kind {
        case .sum8, .sum16, .xor8: Checksum(kind)
        case .crc8: Checksum(kind, polynomial: 0x07)
        case .crc16: Checksum(kind, polynomial: 0x1021, start: 0xFFFF)
        case .crc32: Checksum(kind, polynomial: 0x04C1_1DB7, start: .max, inversion: .max, isReflected: true)
        }
    }
}

/// The checksum of bytes that are written, which are given without it.
struct WrittenChecksum {
    /// `nil` without `check`, or after a reported error.
    let checksum: Checksum?
    private let owner: MappingReader

    /// Reads `check` of what is written.
    init(_ owner: MappingReader) {
        self.owner = owner
        checksum = ChecksumReader(owner)?.checksum()
    }

    /// Returns the bytes with their checksum, or as they are without one; reports a checksum that does not fit.
    func completed(_ octets: [UInt8]) -> [UInt8]? {
        guard let checksum else { return octets }
        guard let completed = checksum.inserted(into: octets) else {
            owner.report(Self.objection(to: checksum, count: octets.count + checksum.kind.width), at: "check")
            return nil
        }
        return completed
    }

    private static func objection(to checksum: Checksum, count: Int) -> String {
        let written = "the \(count) written bytes, which include the checksum"
        guard checksum.place.range(in: count)?.count == checksum.kind.width else { return "'at' is outside \(written)" }
        guard let bytes = checksum.bytes.range(in: count) else { return "'bytes' goes beyond \(written)" }
        return bytes.isEmpty
            ? "the checksum covers none of \(written)"
            : "a written checksum cannot cover its own bytes; end 'bytes' before 'at', or begin after the checksum"
    }

    /// Reports a checksum that has no place in `count` bytes, without those of the checksum.
    func check(count: Int) {
        _ = completed(Array(repeating: 0, count: count))
    }
}
