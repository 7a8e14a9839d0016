import GattherdModel
import Testing

@Suite struct ReadingBatchTests {
    @Test func `a batch after a burst does not get room for another burst`() {
        let sample = Sample(metric: 0, value: .integer(1))
        var batch = ReadingBatch()
        batch.samples = Array(repeating: sample, count: 20_000)
        batch.removeAll()
        // Journal entries keep the samples of a batch for longer than the batch.
        var stored: [ArraySlice<Sample>] = []
        for _ in 0..<3 {
            batch.samples.append(sample)
            stored.append(batch.samples[...])
            batch.removeAll()
            batch.removeAll()
        }
        #expect(stored.map(\.count) == [1, 1, 1])
        #expect((1..<100).contains(batch.samples.capacity))
    }
}
