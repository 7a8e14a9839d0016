import COpenSSL
import GattherdGATT
import GattherdModel

/// Octets that are encrypted and signed with AES-128-CCM: RFC 3610.
struct EncryptedPayload {
    let ciphertext: [UInt8]
    /// What proves that who wrote it had the key.
    let tag: [UInt8]
    let nonce: [UInt8]

    /// What is in it; `nil` for another key, or octets that are not what was written.
    func open(with key: BindKey) -> [UInt8]? {
        guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        var tag = tag
        var length: Int32 = 0
        // CCM gives nothing for no input, so that there is always room for one octet.
        var contents = [UInt8](repeating: 0, count: ciphertext.count + 1)
        let (nonceSize, tagSize, size) = (Int32(nonce.count), Int32(tag.count), Int32(ciphertext.count))
        let isGenuine =
            unsafe EVP_DecryptInit_ex(context, EVP_aes_128_ccm(), nil, nil, nil) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, nonceSize, nil) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, tagSize, &tag) == 1
            && EVP_DecryptInit_ex(context, nil, nil, key.octets, nonce) == 1
            && EVP_DecryptUpdate(context, &contents, &length, ciphertext, size) == 1
        return isGenuine ? Array(contents.prefix(ciphertext.count)) : nil
    }
}

extension BindKey {
    /// Tells this key, with its remark, from every other one, and not what it is; `nil` where nothing can be computed.
    var fingerprint: String? {
        let text = octets + Array(remark.utf8)
        var digest = [UInt8](repeating: 0, count: 32)
        guard unsafe EVP_Digest(text, text.count, &digest, nil, EVP_sha256(), nil) == 1 else { return nil }
        return Hexadecimal.text(Array(digest.prefix(8)).span)
    }
}
