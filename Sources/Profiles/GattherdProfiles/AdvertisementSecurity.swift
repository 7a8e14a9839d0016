import COpenSSL
import GattherdGATT
package import GattherdModel

/// A payload encrypted with AES-128, or obscured by an exclusive or.
struct EncryptedPayload {
    /// The mode of operation; RFC 3610 for CCM, the only one that authenticates.
    enum Mode: String, Hashable, Sendable, CaseIterable {
        case ccm = "aes-ccm"
        case ctr = "aes-ctr"
        case ecb = "aes-ecb"
        case cbc = "aes-cbc"
        /// The exclusive or with the key's bytes, which are repeated; no encryption.
        case xor
    }

    var mode = Mode.ccm
    let ciphertext: [UInt8]
    /// The authentication tag.
    let tag: [UInt8]
    /// The nonce, the initial counter block or the initialisation vector.
    let nonce: [UInt8]
    /// Bytes that are authenticated but not encrypted.
    var associated: [UInt8] = []

    /// Returns the plaintext; `nil` for a wrong key, modified bytes or an impossible length.
    func open(with key: [UInt8]) -> [UInt8]? {
        if mode == .xor {
            return key.isEmpty ? nil : ciphertext.enumerated().map { $0.element ^ key[$0.offset % key.count] }
        }
        guard key.count == 16, let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        // The buffer has at least one byte, as CCM returns nothing for empty input, and room for a block.
        var contents = [UInt8](repeating: 0, count: ciphertext.count + 16)
        let isOpen =
            switch mode {
            case .ccm: unsafe openAuthenticated(context, key, &contents)
            case .ctr: unsafe openPlainly(context, EVP_aes_128_ctr(), key, &contents)
            case .ecb: unsafe openBlocks(context, EVP_aes_128_ecb(), key, &contents)
            case .cbc: unsafe openBlocks(context, EVP_aes_128_cbc(), key, &contents)
            case .xor: false
            }
        return isOpen ? Array(contents.prefix(ciphertext.count)) : nil
    }

    private func openAuthenticated(_ context: OpaquePointer, _ key: [UInt8], _ contents: inout [UInt8]) -> Bool {
        // OpenSSL refuses other lengths of the nonce itself.
        var (tag, length): ([UInt8], Int32) = (tag, 0)
        let (nonceSize, tagSize, size) = (Int32(nonce.count), Int32(tag.count), Int32(ciphertext.count))
        return
            unsafe EVP_DecryptInit_ex(context, EVP_aes_128_ccm(), nil, nil, nil) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, nonceSize, nil) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, tagSize, &tag) == 1
            && EVP_DecryptInit_ex(context, nil, nil, key, nonce) == 1
            && (associated.isEmpty
                || EVP_DecryptUpdate(context, nil, &length, nil, size) == 1
                    && EVP_DecryptUpdate(context, nil, &length, associated, Int32(associated.count)) == 1)
            && EVP_DecryptUpdate(context, &contents, &length, ciphertext, size) == 1
    }

    /// Decrypts whole blocks only.
    private func openBlocks(
        _ context: OpaquePointer,
        _ cipher: OpaquePointer?,
        _ key: [UInt8],
        _ contents: inout [UInt8]
    ) -> Bool {
        unsafe ciphertext.count % 16 == 0 && openPlainly(context, cipher, key, &contents)
    }

    private func openPlainly(
        _ context: OpaquePointer,
        _ cipher: OpaquePointer?,
        _ key: [UInt8],
        _ contents: inout [UInt8]
    ) -> Bool {
        var length: Int32 = 0
        return
            unsafe nonce.count == 16
            && EVP_DecryptInit_ex(context, cipher, nil, key, nonce) == 1
            && EVP_CIPHER_CTX_set_padding(context, 0) == 1
            && EVP_DecryptUpdate(context, &contents, &length, ciphertext, Int32(ciphertext.count)) == 1
            && Int(length) == ciphertext.count
    }
}

extension BindKey {
    /// A fingerprint of the key and its comment that does not reveal the key; `nil` if it cannot be computed.
    var fingerprint: String? {
        let text = octets + Array(remark.utf8)
        var digest = [UInt8](repeating: 0, count: 32)
        guard unsafe EVP_Digest(text, text.count, &digest, nil, EVP_sha256(), nil) == 1 else { return nil }
        return Hexadecimal.text(Array(digest.prefix(8)).span)
    }
}

extension PayloadError {
    /// A plain payload of a device whose payloads are encrypted.
    static let notEncrypted = PayloadError.invalid(
        reason: "it is not encrypted, although the device has a bind key: anybody could send it"
    )
}

/// The counter of one stream of a device's advertisements.
///
/// Payloads with the number of the one before are repetitions. With a key, payloads with a lower number are replays.
struct ReplayGuard {
    private let isKeyed: Bool
    /// The name of the counter: it belongs to the sender, the profile, the stream, the key and the key's comment.
    private let name: String?
    /// The name in files of versions that left out the profile.
    private let formerName: String?
    /// The counter of the newest authentic payload.
    private var newest: UInt32?

    /// - Parameters:
    ///   - sender: The advertising device.
    ///   - profile: The profile of the stream.
    ///   - stream: The stream of the readings.
    init(_ sender: Sender?, profile: String, stream: String) {
        isKeyed = sender?.key != nil
        let keyed = sender.flatMap { sender in sender.key?.fingerprint.map { (sender.address, $0) } }
        name = keyed.map { "\($0) \(profile)/\(stream) \($1)" }
        formerName = keyed.map { "\($0) \(stream) \($1)" }
    }

    /// The counter to store; `nil` without a key.
    var mark: ReplayCounter? {
        guard let name, let newest else { return nil }
        return ReplayCounter(sender: name, counter: newest)
    }

    mutating func resume(from marks: [String: UInt32]) {
        guard let name, let formerName, let mark = marks[name] ?? marks[formerName] else { return }
        newest = max(newest ?? mark, mark)
    }

    /// Returns false for a repetition.
    ///
    /// - Throws: ``PayloadError`` for a replay.
    mutating func admit(_ number: UInt32) throws(PayloadError) -> Bool {
        if isKeyed, let newest, number < newest {
            throw .invalid(
                reason: "it is a replay: its counter \(number) is below \(newest); "
                    + "if a battery change reset it, write the date into the second line of 'bind_key_file' and reload"
            )
        }
        defer { newest = number }
        return number != newest
    }
}

/// The hash in resolvable private addresses: the function ah of the Core Specification, Vol 3, Part H, 2.2.2.
package enum AddressHash {
    /// Returns the hash, 24 bits, of a random number of 24 bits; `nil` if AES fails.
    package static func compute(_ random: UInt32, with key: IdentityKey) -> UInt32? {
        let number = [16, 8, 0].map { UInt8(truncatingIfNeeded: random >> UInt32($0)) }
        // In counter mode, zeros are encrypted to the encryption of the initial counter block.
        let block = EncryptedPayload(
            mode: .ctr,
            ciphertext: Array(repeating: 0, count: 16),
            tag: [],
            nonce: Array(repeating: 0, count: 13) + number
        )
        return block.open(with: key.octets)?.suffix(3).reduce(0) { $0 << 8 | UInt32($1) }
    }
}
