import GattherdModel
import GattherdYAML

/// Reads `decrypt`.
struct DecryptionReader {
    private static let modes = EncryptedPayload.Mode.allCases.map { (word: $0.rawValue, value: $0) }
    private static let furthest: Int64 = 512
    /// The lengths of a nonce of AES-CCM in bytes: RFC 3610.
    private static let nonces = 7...13

    private let reader: MappingReader

    /// Creates a reader of the mapping `decrypt`; `nil` if it is not a mapping, which is reported.
    init?(_ field: MappingReader) {
        guard let node = field.node("decrypt"),
            let reader = MappingReader(node, .decrypt, findings: field.findings)
        else { return nil }
        self.reader = reader
    }

    /// Returns `nil` after a reported error.
    func decryption() -> Decryption? {
        defer { reader.finish() }
        guard let mode = reader.required("cipher", .choice(Self.modes)) else {
            reader.abandon()
            return nil
        }
        check(mode)
        let tag = reader.value("tag", .slice)
        let nonce = nonce(mode)
        let numbers = -Self.furthest...Self.furthest
        let decryption = Decryption(
            mode: mode,
            key: reader.node("key")?.text == "device" ? nil : .read(reader, "key"),
            nonce: nonce,
            associated: .read(reader, "aad") ?? [],
            tag: tag,
            until: reader.value("until", .integer(numbers)).map { Int($0) } ?? tag.map { $0.first } ?? 0,
            keyCheck: reader.value("key_check", .slice),
            replay: replay(),
            isReversed: reader.value("reversed", .boolean) ?? false
        )
        if decryption.replay != nil, !decryption.usesDeviceKey {
            reader.report("'replay' needs the device's key: anybody could send a high number", at: "replay")
        }
        if mode == .ccm, !decryption.authenticatesReplay {
            reader.report("'replay' must be a part of 'nonce' or 'aad': anybody could change it", at: "replay")
        }
        return decryption
    }

    /// Reads `nonce`, and checks its length if it is always the same.
    private func nonce(_ mode: EncryptedPayload.Mode) -> [ByteSource] {
        let errors = reader.findings.count
        guard let nonce = [ByteSource].read(reader, "nonce") else { return [] }
        if mode == .ccm, reader.findings.count == errors, let count = nonce.fixedCount, !Self.nonces.contains(count) {
            reader.report("the nonce of aes-ccm must have 7 to 13 bytes; this one has \(count)", at: "nonce")
        }
        return nonce
    }

    /// Reads `replay`, and checks that the number has a fixed length and is stored whole.
    private func replay() -> [ByteSource]? {
        let errors = reader.findings.count
        guard let replay = [ByteSource].read(reader, "replay"), reader.findings.count == errors else { return nil }
        if !(1...4).contains(replay.fixedCount ?? 0) {
            let count = replay.fixedCount.map { "\($0)" } ?? "a varying number"
            reader.report("'replay' must have 1 to 4 bytes; this one has \(count)", at: "replay")
        }
        return replay
    }

    /// Checks the keys that a mode needs, and that it cannot have.
    private func check(_ mode: EncryptedPayload.Mode) {
        if mode == .ccm {
            for key in ["nonce", "tag"] where !reader.has(key) { reader.report("aes-ccm needs '\(key)'") }
            if let count = reader.value("tag", .slice)?.fixedCount, ![4, 6, 8, 10, 12, 14, 16].contains(count) {
                reader.report("a tag has 4, 6, 8, 10, 12, 14 or 16 bytes, such as -4..", at: "tag")
            }
            return
        }
        reader.forbid(["aad", "tag", "replay"], "is for aes-ccm")
        if mode == .xor {
            reader.forbid(["nonce", "key_check"], "has no meaning for xor")
            if !reader.has("key") || reader.node("key")?.text == "device" {
                reader.report("xor needs 'key': the bytes that are combined with the payload, such as \"A0\" or 2..3")
            }
            return
        }
        if mode == .ecb { reader.forbid(["nonce"], "has no meaning for aes-ecb") }
        if mode != .ecb, !reader.has("nonce") { reader.report("\(mode.rawValue) needs 'nonce'") }
    }
}

extension Decryption {
    /// True if no byte of the payload that belongs to the replay number can change unnoticed.
    fileprivate var authenticatesReplay: Bool {
        let authentic = (nonce + associated).compactMap(\.received)
        return (replay ?? []).compactMap(\.received).allSatisfy { part in authentic.contains { $0.contains(part) } }
    }
}

extension ByteSource {
    /// The bytes of the payload; `nil` for other sources.
    fileprivate var received: ByteSlice? { if case .slice(let slice) = self { slice } else { nil } }
}

extension ByteSlice {
    /// The numbers of its bytes; `nil` if its ends are counted from different ends of the payload.
    private var bounds: Range<Int>? {
        guard let end else { return first..<(first < 0 ? 0 : .max) }
        return (first < 0) == (end < 0) ? first..<max(first, end) : nil
    }

    /// True if it has all bytes of `part` in payloads of every length.
    fileprivate func contains(_ part: ByteSlice) -> Bool {
        guard (first < 0) == (part.first < 0), let bounds, let inner = part.bounds else { return false }
        return bounds.lowerBound <= inner.lowerBound && inner.upperBound <= bounds.upperBound
    }
}
