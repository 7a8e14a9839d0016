import GattherdGATT
import GattherdModel

/// The envelope of BTHome v2 objects: a device information byte, an optional address and, if encrypted, a
/// counter and a tag.
///
/// bthome.io, "BTHome data format" and "Encryption".
struct BTHomeEnvelope {
    private static let version: UInt8 = 2
    /// The little-endian service UUID, a part of the nonce.
    private static let service: [UInt8] = [0xD2, 0xFC]

    private let sender: Sender?
    private var counter: ReplayGuard

    /// - Parameters:
    ///   - sender: The advertising device.
    ///   - profile: The profile of the stream.
    ///   - stream: The stream of the readings.
    init(_ sender: Sender?, profile: String, stream: String) {
        self.sender = sender
        counter = ReplayGuard(sender, profile: profile, stream: stream)
    }

    var replayMark: ReplayCounter? { counter.mark }

    mutating func resume(from marks: [String: UInt32]) {
        counter.resume(from: marks)
    }

    /// Returns the objects; `nil` if they repeat the last payload.
    mutating func open(_ payload: Span<UInt8>) throws(PayloadError) -> [UInt8]? {
        var cursor = PayloadCursor(payload)
        let device = try cursor.u8()
        guard device >> 5 == Self.version else {
            throw .invalid(reason: "it has BTHome version \(device >> 5) instead of \(Self.version)")
        }
        // The device's own address, little-endian, if it advertises by another one.
        let address = device & 2 == 2 ? try cursor.octets(6) : nil
        let rest = try cursor.octets(cursor.left)
        if device & 1 == 1 { return try decrypted(rest, device, at: cursor.offset - rest.count, address?.reversed()) }
        guard sender?.key == nil else {
            throw .notEncrypted
        }
        return rest
    }

    private mutating func decrypted(
        _ sealed: [UInt8],
        _ device: UInt8,
        at offset: Int,
        _ ownAddress: [UInt8]?
    ) throws(PayloadError) -> [UInt8]? {
        guard let sender, let key = sender.key else {
            throw .invalid(reason: "it is encrypted; write the name of the file with its bind key to 'bind_key_file'")
        }
        guard sealed.count >= 8 else { throw .truncated(offset: offset, needed: 8, left: sealed.count) }
        let count = sealed.suffix(8).prefix(4)
        let onAir = stride(from: 40, through: 0, by: -8).map { shift in
            UInt8(truncatingIfNeeded: sender.address.value >> UInt64(shift))
        }
        let box = EncryptedPayload(
            ciphertext: Array(sealed.dropLast(8)),
            tag: Array(sealed.suffix(4)),
            nonce: (ownAddress ?? onAir) + Self.service + [device] + count
        )
        guard let contents = box.open(with: key.octets) else {
            throw .invalid(reason: "it was not encrypted with this bind key, or it was tampered with")
        }
        let number = count.reversed().reduce(0) { $0 << 8 | UInt32($1) }
        return try counter.admit(number) ? contents : nil
    }
}
