import GattherdModel
import Testing

@testable import GattherdMachines

@Suite struct DeliveryBatchTests {
    private static let stream = StreamDefinition(
        device: "box",
        profile: "test",
        stream: "plain",
        metrics: [MetricDescriptor(name: "value")]
    )

    private static func reading(_ seq: Int64) -> JournalReading {
        JournalReading(
            seq: seq,
            stream: stream,
            time: Timestamp(microseconds: seq),
            source: .notify,
            samples: [Sample(metric: 0, value: .integer(seq))]
        )
    }

    private var batch = DeliveryBatch(sentAt: .zero)

    @Test mutating func `a message keeps the place of its first reading`() {
        batch.open(7)
        batch.add(Self.reading(1), to: 7)
        batch.append(Self.reading(2))
        batch.add(Self.reading(3), to: 7)
        #expect(batch.hasOpenMessages)
        batch.closeAll()
        #expect(!batch.hasOpenMessages)
        #expect(
            batch.messages == [.batch([Self.reading(1), Self.reading(3)]), .reading(Self.reading(2))]
        )
    }

    @Test mutating func `a closed group needs another message`() {
        batch.open(7)
        batch.add(Self.reading(1), to: 7)
        batch.close(7)
        #expect(!batch.isOpen(7) && batch.isEmpty(7))
        batch.open(7)
        batch.add(Self.reading(2), to: 7)
        batch.close(7)
        #expect(batch.messages == [.batch([Self.reading(1)]), .batch([Self.reading(2)])])
    }

    @Test mutating func `a message is full with the most readings that a message may have`() {
        batch.open(7)
        for seq in 1..<Int64(GatheredReadings.maximumReadings) { batch.add(Self.reading(seq), to: 7) }
        #expect(!batch.isFull(7))
        batch.add(Self.reading(0), to: 7)
        #expect(batch.isFull(7))
    }
}
