import GattherdGATT
import GattherdModel
import GattherdProfiles
import Testing

/// Encrypted advertisements.
struct DecryptionTests {
    private static let key = Hexadecimal.octets("b9ea895fac7eea6d30532432a516f3a3").flatMap { BindKey($0) }
    private static let sender = Sender(address: BluetoothAddress(value: 0xA4C1_3811_2233), key: key)
    private static let ccm =
        "cipher: aes-ccm, nonce: [address_le, 0E 16 1A 18, 0..1], aad: \"11\", tag: -4.."
    /// Encrypted with another implementation of AES-CCM: 23.5, 45.21, 85.
    private static let genuine = "BD1BBFE6942E9282742CC9"

    private static func text(_ decryption: String, when: String = "", length: String = "") -> String {
        """
        contract: 1
        profile: thing
        advertisement:
          - service_data: 181a
            stream: thing
            fields:
              - {flags: n, type: u8}
              - {decrypt: {\(decryption)}\(when)}
              - {metric: x, type: i16le}
        \(length)
        """
    }

    private static func decode(_ hex: String, by decoder: any PayloadDecoder) throws -> String {
        let octets = try #require(Hexadecimal.octets(hex))
        var samples: [Sample] = []
        do throws(PayloadError) {
            try decoder.decode(octets.span, characteristic: 0, into: &samples)
        } catch {
            return error.description
        }
        return samples.map { sample in
            if case .integer(let number) = sample.value { "\(number)" } else { "\(sample.value)" }
        }.joined(separator: " ")
    }

    private static func decode(
        _ hex: String,
        _ decryption: String,
        when: String = "",
        sender: Sender? = sender
    ) throws -> String {
        let profile = try DeclarativeText.compile(text(decryption, when: when))
        return try decode(hex, by: sender.map { profile.makeDecoder(for: $0) } ?? profile.makeDecoder())
    }

    @Test func `fields after a decryption see the plaintext`() throws {
        #expect(try Self.decode(Self.genuine, Self.ccm) == "2350")
    }

    @Test func `a payload without or with another key is rejected`() throws {
        let keyless = Sender(address: Self.sender.address)
        #expect(try Self.decode(Self.genuine, Self.ccm, sender: keyless).contains("'bind_key_file'"))
        #expect(try Self.decode(Self.genuine, Self.ccm, sender: nil).contains("'bind_key_file'"))
        let other = Sender(address: Self.sender.address, key: BindKey(Array(repeating: 1, count: 16)))
        #expect(try Self.decode(Self.genuine, Self.ccm, sender: other).contains("not encrypted with this bind key"))
    }

    @Test func `a change of any bit or any truncation of an authenticated payload is rejected`() throws {
        let octets = try #require(Hexadecimal.octets(Self.genuine))
        let decoder = try DeclarativeText.compile(Self.text(Self.ccm)).makeDecoder(for: Self.sender)
        for bit in 0..<8 * octets.count {
            var forged = octets
            forged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(try Self.decode(Hexadecimal.text(forged.span), by: decoder).contains("tampered"), "bit \(bit)")
        }
        for length in 0..<octets.count {
            let text = try Self.decode(Hexadecimal.text(Array(octets[..<length]).span), by: decoder)
            #expect(text.contains(" "), "\(length) bytes")
        }
    }

    @Test func `a plain payload is decoded without a key and rejected with one`() throws {
        let keyless = Sender(address: Self.sender.address)
        #expect(try Self.decode("BC 0500", Self.ccm, when: ", when: n.0", sender: keyless) == "5")
        #expect(try Self.decode("BC 0500", Self.ccm, when: ", when: n.0").contains("anybody could send it"))
        #expect(try Self.decode(Self.genuine, Self.ccm, when: ", when: n.0") == "2350")
    }

    /// FIPS 197, "AES-128 (Nk=4, Nr=10)": the plaintext is 00112233445566778899aabbccddeeff.
    @Test(
        arguments: [
            ("cipher: aes-ecb", 0x1100), ("cipher: aes-cbc, nonce: \"00\"", 0x1100),
            ("cipher: aes-cbc, nonce: FF00", 0x11FF),
            ("cipher: aes-ecb, until: 17", 0x1100),
        ]
    )
    func `blocks are decrypted with a fixed key`(decryption: String, value: Int) throws {
        let hex = "00 69c4e0d86a7b0430d8cdb78070b4c55a"
        let key = ", key: 000102030405060708090A0B0C0D0E0F"
        #expect(try Self.decode(hex, decryption + key, sender: nil) == "\(value)")
        #expect(try Self.decode("00 69c4e0d86a7b04", decryption + key, sender: nil).contains(" "))
    }

    /// SP 800-38A, "CTR-AES128.Decrypt": the plaintext is 6bc1bee2….
    @Test func `a stream cipher is decrypted at any length`() throws {
        let key = "2b7e151628aed2a6abf7158809cf4f3c"
        let rule = "cipher: aes-ctr, nonce: [F0F1F2F3F4F5F6F7, F8F9FAFBFCFDFEFF], key: \(key)"
        #expect(try Self.decode("00 874d6191b620e3261bef6864990db6ce", rule, sender: nil) == "\(0xC16B - 0x10000)")
        #expect(try Self.decode("00 874d", rule, sender: nil) == "\(0xC16B - 0x10000)")
        #expect(try Self.decode("00 87", rule, sender: nil).contains("truncated"))
    }

    @Test func `the beginning of the key is checked`() throws {
        let rule = "cipher: aes-ctr, nonce: \"00\", key_check: 0..1"
        #expect(try !Self.decode("B9 0000", rule).contains(" "))
        #expect(try Self.decode("B8 0000", rule).contains("it does not match key_check"))
    }

    @Test func `a lower number is a replay, and the same one is a repetition`() throws {
        let profile = try DeclarativeText.compile(Self.text(Self.ccm + ", replay: 0..1"))
        let decoder = profile.makeDecoder(for: Self.sender)
        // Encrypted with another implementation of AES-CCM.
        let (fourth, fifth, sixth) = ("041119E61CA695", "050C961D5E3207", "06EB4A6E87E7BD")
        let forged = "FFEB4A6E87E7BD"
        let told = try [fifth, fifth, forged, sixth, fourth].map { try Self.decode($0, by: decoder) }
        #expect(told[0] == "2350" && told[1] == "" && told[3] == "2350")
        #expect(told[2].contains("tampered"))
        #expect(told[4].hasPrefix("it is a replay: its counter 4 is below 6"))
        let later = profile.makeDecoder(for: Self.sender)
        later.resume(from: Dictionary(uniqueKeysWithValues: decoder.replayMarks.map { ($0.sender, $0.counter) }))
        #expect(try Self.decode(fifth, by: later).contains("replay"))
    }

    @Test func `profiles have counters of their own, and resume from one that has no profile in its name`() throws {
        let text = Self.text(Self.ccm + ", replay: 0..1")
        let other = text.replacing("profile: thing", with: "profile: other")
        let decoders = try [text, other].map { try DeclarativeText.compile($0).makeDecoder(for: Self.sender) }
        // Encrypted with another implementation of AES-CCM.
        let (fifth, sixth) = ("050C961D5E3207", "06EB4A6E87E7BD")
        #expect(try Self.decode(sixth, by: decoders[0]) == "2350")
        let mark = try #require(decoders[0].replayMarks.first)
        decoders[1].resume(from: [mark.sender: mark.counter])
        #expect(try Self.decode(fifth, by: decoders[1]) == "2350")
        let later = try DeclarativeText.compile(other).makeDecoder(for: Self.sender)
        later.resume(from: [mark.sender.replacing("thing/thing", with: "thing"): mark.counter])
        #expect(try Self.decode(fifth, by: later).contains("replay"))
    }

    @Test func `the whole decrypted payload counts for an exact length`() throws {
        let profile = try DeclarativeText.compile(Self.text(Self.ccm, length: "    length: exact"))
        let text = try Self.decode(Self.genuine, by: profile.makeDecoder(for: Self.sender))
        #expect(text.hasPrefix("too long: 4 bytes after the last field"))
    }

    @Test func `random payloads are decoded or rejected in all modes`() throws {
        let rules = [
            Self.ccm, "cipher: aes-ccm, nonce: [-7..], tag: -4.., until: 5, replay: -1..",
            "cipher: aes-cbc, nonce: [address, 1..3]", "cipher: aes-ecb, key: 2..4, reversed: true, until: 18",
            "cipher: aes-ctr, nonce: 0..2, until: -1, key_check: 3..4",
        ]
        var random = SystemRandomNumberGenerator()
        for rule in rules {
            let decoder = try DeclarativeText.compile(Self.text(rule)).makeDecoder(for: Self.sender)
            for _ in 0..<2000 {
                let octets = (0..<Int.random(in: 0...40)).map { _ in UInt8.random(in: .min ... .max, using: &random) }
                decoder.tryDecode(octets, characteristic: 0)
            }
        }
    }

    @Test func `an explanation shows the plaintext`() throws {
        let profile = try DeclarativeText.compile(Self.text(Self.ccm))
        let octets = try #require(Hexadecimal.octets(Self.genuine))
        let explanation = try #require(
            ProfileTools.explain([octets], characteristic: 0, of: profile, from: Self.sender)
        )
        #expect(explanation.rejection == nil)
        #expect(Hexadecimal.text(explanation.payload.span).uppercased() == "BD2E09A9115505")
        #expect(explanation.rows.map(\.field) == ["n", "decrypted", "x"])
        #expect(explanation.rows.map(\.source) == ["u8", "aes-ccm", "i16le"])
        #expect(explanation.leftOver == 3..<7)
    }

    @Test(
        arguments: [
            ("0..8", "0..9", "8..10", false), ("0..8", "0..9", "8..9", true), ("0..8", "0..9", "6..8", true),
            ("0..8", "0..9", "[0..2, 8..9]", true), ("0..8", "0..9", "[0..2, 9..10]", false),
            ("0..8", "0..9", "-8..-6", false), ("-12..-4", "0..1", "-6..-4", true),
            ("-12..-4", "0..1", "-4..-2", false), ("-12..-4", "-1..", "-1..", true), ("0..8", "8..", "20..22", true),
            ("0..8", "8..-4", "8..10", false),
        ]
    )
    func `a replay number consists of bytes of the nonce or of the associated data`(
        nonce: String,
        associated: String,
        replay: String,
        isAuthentic: Bool
    ) throws {
        let rule = "cipher: aes-ccm, nonce: \(nonce), aad: \(associated), tag: -4.., replay: \(replay)"
        guard !isAuthentic else {
            _ = try DeclarativeText.compile(Self.text(rule))
            return
        }
        let errors = try DeclarativeText.errors(Self.text(rule))
        let reason = "'replay' must be a part of 'nonce' or 'aad': anybody could change it"
        #expect(errors.contains { $0.hasSuffix(reason) }, "\(errors)")
    }

    @Test(
        arguments: [
            (text("cipher: aes"), "8:28: 'aes' is invalid; expected one of aes-ccm, aes-ctr, aes-ecb, aes-cbc"),
            (text("nonce: 0..1"), "8:19: a decryption needs 'cipher'"),
            (text("cipher: aes-ccm, nonce: 0..1"), "8:19: aes-ccm needs 'tag'"),
            (text("cipher: aes-ctr"), "8:19: aes-ctr needs 'nonce'"),
            (text("cipher: aes-ecb, nonce: 0..1"), "8:37: 'nonce' has no meaning for aes-ecb"),
            (text("cipher: aes-ctr, nonce: 0..1, tag: -4.."), "8:50: 'tag' is for aes-ccm"),
            (text("cipher: aes-ctr, nonce: 0..1, replay: 0..1"), "8:50: 'replay' is for aes-ccm"),
            (
                text("cipher: aes-ccm, nonce: 0..1, tag: -4.., key: 0..1, replay: 0..1"),
                "8:72: 'replay' needs the device's key"
            ),
            (
                text("cipher: aes-ccm, nonce: 0..8, tag: -4.., replay: 0..5"),
                "8:61: 'replay' must have 1 to 4 bytes; this one has 5"
            ),
            (
                text("cipher: aes-ccm, nonce: 0..8, tag: -4.., replay: 5.."),
                "8:61: 'replay' must have 1 to 4 bytes; this one has a varying number"
            ),
            (text("cipher: aes-ctr, nonce: adress"), "8:44: 'adress' is invalid; expected address, address_le"),
            (
                text("cipher: aes-ccm, nonce: [address, 0..8], tag: -4.."),
                "8:37: the nonce of aes-ccm must have 7 to 13 bytes"
            ),
            (
                text(ccm, length: "    tests: [{hex: \"00\", key: b9ea895fac7eea6d30532432a516f3a3, reject: true}]"),
                "10:25: the 'key' of a test needs the 'address' of its sender"
            ),
            (text("cipher: aes-ctr, nonce: []"), "8:37: 'nonce' is a list of 1 to 8 parts"),
            (text("cipher: aes-ccm, nonce: 0..1, tag: -5.."), "8:50: a tag has 4, 6, 8, 10, 12, 14 or 16 bytes"),
            (text("cipher: aes-ecb}}\n      - {decrypt: {cipher: aes-ecb"), "9:10: a payload is decrypted once"),
            (
                DeclarativeText.profile(fields: ["{decrypt: {cipher: aes-ecb}}", "{metric: x, type: u8}"]),
                "9:10: the device's key and address are for advertisements"
            ),
        ]
    )
    func `errors in decryptions have a position`(text: String, error: String) throws {
        let errors = try DeclarativeText.errors(text)
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }
}

/// The hash in resolvable private addresses.
struct AddressHashTests {
    @Test func `the hash is that of the specification's sample data`() throws {
        let key = try #require(Hexadecimal.octets("ec0234a357c8ad05341010a60a397d9b").flatMap { IdentityKey($0) })
        #expect(AddressHash.compute(0x708194, with: key) == 0x0DFBAA)
        #expect(AddressHash.compute(0x708195, with: key) != 0x0DFBAA)
    }
}
