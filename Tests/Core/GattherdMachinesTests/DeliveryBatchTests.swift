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
        batch.open(7, expecting: 2)
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
        batch.open(7, expecting: 2)
        batch.add(Self.reading(1), to: 7)
        batch.close(7)
        #expect(!batch.isOpen(7))
        batch.open(7, expecting: 2)
        batch.add(Self.reading(2), to: 7)
        batch.close(7)
        #expect(batch.messages == [.batch([Self.reading(1)]), .batch([Self.reading(2)])])
    }

    @Test mutating func `a message is full with the most readings that a message may have`() {
        batch.open(7, expecting: 1)
        let last = Int64(GatheredReadings.maximumReadings)
        let messages = (1...last).map { batch.add(Self.reading($0), to: 7) }
        #expect(messages.map(\.isFull) == (1...last).map { $0 == last })
        #expect(messages.map(\.isFirst) == (1...last).map { $0 == 1 })
    }
}
