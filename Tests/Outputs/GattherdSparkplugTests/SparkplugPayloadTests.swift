import GattherdMachines
import Testing

@testable import GattherdSparkplug

/// The codec of payloads; the vectors are from Google's protobuf library with Sparkplug's definitions.
@Suite struct SparkplugPayloadTests {
    private static let time: UInt64 = 1_486_144_502_122

    private static let payload = SparkplugPayload(
        timestamp: time,
        metrics: [
            SparkplugMetric(name: "bdSeq", alias: 1, timestamp: time, datatype: 4, value: .long(255)),
            SparkplugMetric(name: "a/real", alias: 300, timestamp: 1, datatype: 10, unit: "°C", value: .double(-1.5)),
            SparkplugMetric(alias: 2, timestamp: 2, isHistorical: true, isNull: true),
            SparkplugMetric(alias: 3, value: .long(UInt64(bitPattern: -7))),
            SparkplugMetric(alias: 4, value: .string("grün")),
            SparkplugMetric(alias: 5, value: .boolean(true)),
            SparkplugMetric(alias: 6, value: .bytes([0, 255])),
            SparkplugMetric(alias: 7, value: .float(0.5)),
            SparkplugMetric(alias: 8, datatype: 3, value: .int(UInt32(bitPattern: -7))),
        ],
        seq: 255
    )
    private static let encoded = bytes(
        "08eaf2f5a8a02b12150a056264536571100118eaf2f5a8a02b200458ff01122c0a06612f7265616c10ac021801200a4a120a07656e6755"
            + "6e69741207080c4203c2b04369000000000000f8bf12081002180228013801120d100358f9ffffffffffffffff0112091004"
            + "7a056772c3bc6e1204100570011207100682010200ff12071007650000003f120a1008200350f9ffffff0f18ff01"
    )
    /// A command with fields that this edge node does not use: a data set, metadata, a UUID, a body, a transient flag.
    private static let foreign = bytes(
        "080512100a017820103001420218038a01020801121a0a144e6f646520436f6e74726f6c2f52656269727468200b70012201752a0162"
    )

    static func bytes(_ digits: String) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Substring(digits)
        while let byte = UInt8(rest.prefix(2), radix: 16) {
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    @Test func `a payload is encoded as protobuf libraries do`() {
        #expect(Self.payload.encoded == Self.encoded)
        #expect(SparkplugPayload().encoded.isEmpty)
    }

    @Test func `a payload of a protobuf library is decoded`() throws {
        var expected = Self.payload
        // Properties are not read.
        expected.metrics[1].unit = nil
        #expect(try SparkplugPayload(decoding: Self.encoded[...]) == expected)
    }

    @Test func `fields and values that are not used are skipped`() throws {
        let payload = try SparkplugPayload(decoding: Self.foreign[...])
        #expect(payload.timestamp == 5)
        #expect(payload.metrics.map(\.name) == ["x", "Node Control/Rebirth"])
        #expect(payload.metrics.map(\.value) == [nil, .boolean(true)])
        #expect(EdgeNode.isRebirth(payload))
    }

    @Test func `a payload that is cut off is an error or a shorter payload, at every byte`() {
        for bytes in [Self.encoded, Self.foreign] {
            for end in bytes.indices {
                guard let payload = try? SparkplugPayload(decoding: bytes[..<end]) else { continue }
                #expect(payload.metrics.count <= Self.payload.metrics.count)
                #expect(payload != Self.payload)
            }
        }
    }

    @Test func `random and damaged bytes never trap, and decode to bounded payloads`() {
        var random = SplitMix64(seed: 7)
        for round in 0..<20_000 {
            var bytes = round.isMultiple(of: 2) ? Self.encoded : []
            for _ in 0..<Int.random(in: 0...40, using: &random) {
                let byte = UInt8.random(in: 0...255, using: &random)
                if bytes.isEmpty || Bool.random(using: &random) {
                    bytes.insert(byte, at: Int.random(in: 0...bytes.count, using: &random))
                } else {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = byte
                }
            }
            guard let payload = try? SparkplugPayload(decoding: bytes[...]) else { continue }
            #expect(payload.metrics.count <= bytes.count)
        }
    }

    @Test(
        arguments: [
            ([0x08], ProtobufError.truncated),
            ([0x08] + Array(repeating: 0xFF, count: 10), .longInteger),
            ([0x00, 0x01], .invalidField),
            ([0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0x01], .invalidField),
            ([0x0B], .invalidWireType(3)),
            ([0x0E], .invalidWireType(6)),
            ([0x0A, 0x00], .wrongType(field: 1)),
            ([0x10, 0x00], .wrongType(field: 2)),
            ([0x12, 0x7F], .truncated),
            ([0x12, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], .truncated),
            ([0x12, 0x03, 0x0A, 0x01, 0xFF], .invalidText),
            ([0x12, 0x02, 0x50, 0x80], .truncated),
            ([0x12, 0x02, 0x52, 0x00], .wrongType(field: 10)),
            ([0x12, 0x02, 0x38], .truncated),
        ] as [([UInt8], ProtobufError)]
    )
    func `invalid bytes are refused with the reason`(bytes: [UInt8], error: ProtobufError) {
        #expect(throws: error) { try SparkplugPayload(decoding: bytes[...]) }
        #expect(!error.description.isEmpty)
    }

    @Test func `a payload has at most 256 metrics`() {
        let most: [UInt8] = (0..<SparkplugPayload.maximumMetrics).flatMap { _ -> [UInt8] in [0x12, 0] }
        #expect((try? SparkplugPayload(decoding: most[...]))?.metrics.count == 256)
        #expect(throws: ProtobufError.tooManyMetrics) { try SparkplugPayload(decoding: (most + [0x12, 0])[...]) }
    }

    @Test func `of a field that occurs twice, the last one counts`() throws {
        let twice: [UInt8] = [0x12, 0x08, 0x10, 0x01, 0x10, 0x02, 0x70, 0x00, 0x50, 0x05]
        #expect(try SparkplugPayload(decoding: twice[...]).metrics == [SparkplugMetric(alias: 2, value: .int(5))])
    }

    @Test func `every payload survives encoding and decoding`() throws {
        var random = SplitMix64(seed: 3)
        for _ in 0..<2000 {
            var payload = SparkplugPayload(timestamp: .random(in: 0 ... .max, using: &random))
            for _ in 0..<Int.random(in: 0...4, using: &random) { payload.metrics.append(.random(using: &random)) }
            #expect(try SparkplugPayload(decoding: payload.encoded[...]) == payload)
        }
    }
}

extension SparkplugMetric {
    fileprivate static func random(using random: inout SplitMix64) -> SparkplugMetric {
        var metric = SparkplugMetric()
        if Bool.random(using: &random) { metric.name = "ä\(random.next())" }
        if Bool.random(using: &random) { metric.alias = random.next() }
        if Bool.random(using: &random) { metric.timestamp = random.next() }
        if Bool.random(using: &random) { metric.datatype = UInt32(truncatingIfNeeded: random.next()) }
        metric.isHistorical = Bool.random(using: &random)
        metric.isNull = Bool.random(using: &random)
        let values: [Value?] = [
            nil, .int(UInt32(truncatingIfNeeded: random.next())), .long(random.next()), .float(Float(random.next())),
            .double(-Double(random.next())), .boolean(Bool.random(using: &random)), .string(""), .bytes([]),
        ]
        metric.value = values.randomElement(using: &random) ?? nil
        return metric
    }
}
