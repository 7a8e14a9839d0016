import GattherdGATT
import GattherdModel
import GattherdYAML

/// A part of a key, a nonce or associated data.
enum ByteSource: Hashable, Sendable {
    /// Fixed bytes.
    case fixed([UInt8])
    /// Bytes of the payload as it was received.
    case slice(ByteSlice)
    /// Bytes of the device's key.
    case key(ByteSlice)
    /// The sender's address as it is written; reversed, as it is sent.
    case address(isReversed: Bool)

    /// Appends the bytes; returns false if the payload does not have them, or the sender is not known.
    func append(to octets: inout [UInt8], _ payload: Span<UInt8>, _ sender: Sender?) -> Bool {
        switch self {
        case .fixed(let fixed): octets += fixed
        case .slice(let slice):
            guard let range = slice.range(in: payload.count) else { return false }
            for index in range { octets.append(payload[index]) }
        case .key(let slice):
            guard let key = sender?.key?.octets, let range = slice.range(in: key.count) else { return false }
            octets += key[range]
        case .address(let isReversed):
            guard let address = sender?.address.value else { return false }
            let shifts = isReversed ? [0, 8, 16, 24, 32, 40] : [40, 32, 24, 16, 8, 0]
            octets += shifts.map { UInt8(truncatingIfNeeded: address >> UInt64($0)) }
        }
        return true
    }
}

extension ByteSource {
    var isKey: Bool { if case .key = self { true } else { false } }

    /// The number of bytes, if it is the same for all payloads.
    var fixedCount: Int? {
        switch self {
        case .fixed(let octets): octets.count
        case .slice(let slice), .key(let slice): slice.fixedCount
        case .address: 6
        }
    }

    /// True if it differs from device to device.
    var needsSender: Bool {
        switch self {
        case .key, .address: true
        case .fixed, .slice: false
        }
    }
}

extension [ByteSource] {
    private static let most = 8

    /// The number of bytes of all parts, if it is the same for all payloads.
    var fixedCount: Int? {
        let counts = compactMap(\.fixedCount)
        return counts.count == count ? counts.reduce(0, +) : nil
    }

    /// Returns all bytes; `nil` if the payload does not have them, or the sender is not known.
    func octets(_ payload: Span<UInt8>, _ sender: Sender?) -> [UInt8]? {
        var octets: [UInt8] = []
        for source in self {
            guard source.append(to: &octets, payload, sender) else { return nil }
        }
        return octets
    }

    /// Reads one source or a list.
    static func read(_ reader: MappingReader, _ key: String) -> [ByteSource]? {
        guard let node = reader.node(key) else { return nil }
        let nodes = node.elements ?? [node]
        if nodes.isEmpty || nodes.count > most {
            reader.report("'\(key)' is a list of 1 to \(most) parts, such as [address_le, 2..5, \"11\"]", at: key)
        }
        return nodes.prefix(most).compactMap { ProfileGrammar.byteSource.read($0, reader.findings) }
    }
}

extension ProfileGrammar<ByteSource> {
    static let byteSource = ProfileGrammar(
        "address, address_le, bytes of the payload such as 2..5, of the key such as key 0..6, or fixed bytes",
        words: ["address", "address_le"]
    ) { text in
        switch text {
        case "address": return .address(isReversed: false)
        case "address_le": return .address(isReversed: true)
        default: break
        }
        if text.hasPrefix("key ") { return ByteSlice(text.dropFirst(4)).map { .key($0) } }
        if text.contains("..") { return ByteSlice(text).map { .slice($0) } }
        return Hexadecimal.octets(text).flatMap { (1...16).contains($0.count) ? .fixed($0) : nil }
    }
}
