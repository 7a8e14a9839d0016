import GattherdGATT
import GattherdModel

/// The messages in the first payloads of a connection.
struct MessageSequence {
    struct Message {
        /// The bytes of the message, or discarded ones.
        let octets: [UInt8]
        /// True for a message, false for bytes that are none.
        let isWhole: Bool
        /// The reason of the reject; `nil` if it decodes.
        let rejection: PayloadError?
    }

    private(set) var all: [Message] = []

    /// Puts the messages together and decodes them; without a rule each payload is a message.
    ///
    /// A message without an end is rejected.
    init(_ payloads: [[UInt8]], _ rule: MessageRule?, decode: ([UInt8]) -> PayloadError?) {
        guard let rule else {
            all = payloads.map { Message(octets: $0, isWhole: true, rejection: decode($0)) }
            return
        }
        var assembly = MessageAssembly(rule)
        let handle = { (octets: Span<UInt8>, discarded: PayloadError?) in
            let octets = octets.indices.map { octets[$0] }
            let rejection = discarded ?? decode(octets)
            all.append(Message(octets: octets, isWhole: discarded == nil, rejection: rejection))
            return rejection == nil
        }
        let time = Timestamp(microseconds: 0)
        for payload in payloads { assembly.receive(payload.span, at: time, handle) }
        assembly.finish(handle)
    }
}

extension Profile {
    /// The rule by which a stream's values are put together, if any.
    func messages(of stream: Int) -> MessageRule? {
        characteristics.indices.contains(stream) ? characteristics[stream].messages : nil
    }
}

extension PayloadDecoder {
    /// Decodes a payload; returns the error if it is rejected, else `nil`.
    func rejection(of payload: [UInt8], characteristic: Int, into samples: inout [Sample]) -> PayloadError? {
        do throws(PayloadError) {
            try decode(payload.span, characteristic: characteristic, into: &samples)
            return nil
        } catch {
            return error
        }
    }
}
