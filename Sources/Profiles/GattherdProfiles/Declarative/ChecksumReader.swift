import GattherdYAML

/// Reads `check`.
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
        guard let kind = reader.required("kind", .choice(Self.kinds)) else { return nil }
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
        let (polynomial, start, inversion): (UInt32, UInt32, UInt32) =
            switch kind {
            case .sum8, .sum16, .xor8: (0, 0, 0)
            case .crc8: (0x07, 0, 0)
            case .crc16: (0x1021, 0xFFFF, 0)
            case .crc32: (0x04C1_1DB7, .max, .max)
            }
        return Checksum(
            kind: kind,
            polynomial: polynomial,
            start: start,
            inversion: inversion,
            isReflected: kind == .crc32,
            bytes: ByteSlice(first: 0, end: -kind.width),
            place: ByteSlice(first: -kind.width, end: nil),
            isBigEndian: false
        )
    }
}
