import GattherdGATT
import GattherdModel

/// The encryption of a payload's end.
struct Decryption: Sendable {
    let mode: EncryptedPayload.Mode
    /// The parts of the key; `nil` for the device's own.
    let key: [ByteSource]?
    /// The parts of the nonce, the initial counter block or the initialisation vector.
    let nonce: [ByteSource]
    /// The parts of the associated data.
    let associated: [ByteSource]
    /// The authentication tag.
    let tag: ByteSlice?
    /// The byte after the encrypted ones, counted from the end if negative; 0 for the end of the payload.
    let until: Int
    /// The first bytes of the key, to detect a wrong key.
    let keyCheck: ByteSlice?
    /// The parts of a number that only grows, the lowest byte first.
    let replay: [ByteSource]?
    /// True if the bytes of the key, of the data and of the result are in reverse order.
    let isReversed: Bool

    /// True if it needs the device's key.
    var usesDeviceKey: Bool { key.map { $0.contains(where: \.isKey) } ?? true }

    /// True if the key or another part differs from device to device.
    var needsSender: Bool {
        usesDeviceKey || ((key ?? []) + nonce + associated + (replay ?? [])).contains(where: \.needsSender)
    }

    /// Returns the bytes before `offset` and the decrypted ones after it; later bytes are omitted.
    ///
    /// - Throws: ``PayloadError`` without a key, with the wrong one, and for a modified or truncated payload.
    func open(_ payload: Span<UInt8>, from offset: Int, _ sender: Sender?) throws(PayloadError) -> [UInt8] {
        let key = try key(payload, sender)
        let end = until > 0 ? until : payload.count + until
        guard offset <= end, end <= payload.count, let nonce = nonce.octets(payload, sender),
            let associated = associated.octets(payload, sender), let tag = octets(tag, payload)
        else { throw .truncated(offset: offset, needed: max(1, offset - end), left: payload.count - offset) }
        let sealed = EncryptedPayload(
            mode: mode,
            ciphertext: ordered(payload.octets(offset..<end)),
            tag: tag,
            nonce: mode == .ccm ? nonce : nonce.filled,
            associated: associated
        )
        guard let contents = sealed.open(with: key) else {
            throw .invalid(reason: "it was not encrypted with this bind key, or it was tampered with")
        }
        return payload.octets(0..<offset) + ordered(contents)
    }

    /// Returns the number that only grows; `nil` without one, and for a payload that does not have it.
    func number(of payload: Span<UInt8>, _ sender: Sender?) -> UInt32? {
        replay?.octets(payload, sender).map { $0.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) } }
    }

    private func key(_ payload: Span<UInt8>, _ sender: Sender?) throws(PayloadError) -> [UInt8] {
        guard !usesDeviceKey || sender?.key != nil else {
            throw .invalid(reason: "it is encrypted; write the name of the file with its bind key to 'bind_key_file'")
        }
        guard let key = key.map({ $0.octets(payload, sender).map(completed) }) ?? sender?.key?.octets,
            let check = octets(keyCheck, payload), !key.isEmpty
        else { throw .truncated(offset: 0, needed: payload.count + 1, left: payload.count) }
        guard key.starts(with: check) else {
            throw .invalid(reason: "wrong bind key: it does not match key_check")
        }
        return ordered(key)
    }

    /// Returns a key of 16 bytes; that of an exclusive or may have fewer.
    private func completed(_ key: [UInt8]) -> [UInt8] { mode == .xor ? key : key.filled }

    /// Returns no bytes without a slice; `nil` for a payload that does not have it.
    private func octets(_ slice: ByteSlice?, _ payload: Span<UInt8>) -> [UInt8]? {
        guard let slice else { return [] }
        return slice.range(in: payload.count).map { payload.octets($0) }
    }

    private func ordered(_ octets: [UInt8]) -> [UInt8] { isReversed ? octets.reversed() : octets }
}

extension [UInt8] {
    /// The first 16 bytes, filled up with zeros.
    fileprivate var filled: [UInt8] {
        Array(prefix(16)) + Array(repeating: 0, count: Swift.max(0, 16 - count))
    }
}

extension Span<UInt8> {
    fileprivate func octets(_ range: Range<Int>) -> [UInt8] { range.map { self[$0] } }
}

/// The state of the decryption of one sender's payloads.
struct DecryptionMemory {
    let sender: Sender?
    private var guardian: ReplayGuard
    /// True if the last payload had the number of the one before.
    private(set) var isRepetition = false

    /// - Parameters:
    ///   - sender: The advertising device.
    ///   - profile: The profile of the stream.
    ///   - stream: The stream of the readings.
    init(_ sender: Sender?, profile: String, stream: String) {
        self.sender = sender
        guardian = ReplayGuard(sender, profile: profile, stream: stream)
    }

    var replayMark: ReplayCounter? { guardian.mark }

    mutating func resume(from marks: [String: UInt32]) {
        guardian.resume(from: marks)
    }

    mutating func startPayload() { isRepetition = false }

    /// Records the number of an authentic payload.
    ///
    /// - Throws: ``PayloadError`` for a replay.
    mutating func admit(_ number: UInt32) throws(PayloadError) {
        isRepetition = try !guardian.admit(number)
    }
}
