import GattherdModel
import Testing

@testable import GattherdMachines

@Suite struct GatheredReadingsTests {
    private func reading(_ device: Int) -> JournalReading {
        let metrics = [MetricDescriptor(name: "value")]
        return JournalReading(
            seq: Int64(device),
            stream: StreamDefinition(device: "d\(device)", profile: "test", stream: "plain", metrics: metrics),
            time: Timestamp(microseconds: 0),
            source: .advert,
            samples: [Sample(metric: 0, value: .integer(1))]
        )
    }

    @Test func `devices that come and go leave nothing behind`() {
        var gathered = GatheredReadings()
        for device in 0..<3 * GatheredReadings.maximumStreams {
            let number = gathered.add(reading(device), due: .zero)
            gathered.remove(reading(device), from: number)
        }
        #expect(gathered.groups.isEmpty && gathered.waiting == 0)
        #expect(gathered.numbers.count <= GatheredReadings.maximumStreams)
    }

    @Test func `readings that are put back join their own group only`() {
        var gathered = GatheredReadings()
        let first = gathered.add(reading(1), due: .seconds(1))
        gathered.remove(reading(1), from: first)
        let second = gathered.add(reading(2), due: .seconds(1))
        gathered.putBack(reading(1), to: first)
        #expect(first != second && gathered.count(first) == 1 && gathered.count(second) == 1)
        #expect(gathered.isDue(first, at: .zero) && !gathered.isDue(second, at: .zero))
        #expect(gathered.add(reading(1), due: .seconds(1)) == first)
        #expect(gathered.messages(at: .zero) == 1 && gathered.nextDue(after: .zero) == .seconds(1))
    }
}
