import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdDaemon

/// Decoders that give metrics which their streams do not have.
struct StrayMetricTests {
    /// Decodes each octet to a sample of the metric with this index.
    private final class IndexDecoder: PayloadDecoder {
        func decode(_ payload: Span<UInt8>, characteristic: Int, into samples: inout [Sample]) throws(PayloadError) {
            for index in payload.indices { samples.append(Sample(metric: Int(payload[index]), value: .integer(1))) }
        }
    }

    private struct IndexProfile: Profile {
        let name = "indices"
        let title = "Samples of any metric"
        let services: [BluetoothUUID] = [0xAAAA]
        let characteristics = [
            CharacteristicDescriptor(
                uuid: 0xBBBB,
                stream: "indices",
                metrics: [MetricDescriptor(name: "first"), MetricDescriptor(name: "second")]
            )
        ]
        let controls: [ControlDescriptor] = []
        let origin = "test"

        func makeDecoder() -> any PayloadDecoder { IndexDecoder() }
        func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] { [] }
    }

    private func batch(of payloads: [[UInt8]]) -> ReadingBatch {
        let profile = IndexProfile()
        let metrics = profile.characteristics[0].metrics
        let binding = StreamBinding(
            stream: StreamDefinition(device: "box", profile: "indices", stream: "indices", metrics: metrics),
            profile: profile,
            characteristic: 0,
            decoder: 1,
            source: .notify,
            meter: DeviceMeter(),
            echo: nil
        )
        var decoder = BatchDecoder()
        var batch = ReadingBatch()
        for payload in payloads {
            let time = Timestamp(microseconds: 1_750_000_000_000_000)
            let entry = Intake.Buffer.Entry(binding: binding, time: time, bytes: 0..<payload.count)
            decoder.decode([entry], of: payload, into: &batch)
        }
        return batch
    }

    @Test(arguments: [2, 0xFF] as [UInt8])
    func `a payload with a stray metric is a reject, and the batch keeps its other readings`(stray: UInt8) {
        let batch = batch(of: [[0, 1], [0, stray], [1]])
        #expect(batch.readings.map(\.samples) == [0..<2, 2..<3])
        #expect(batch.samples.map(\.metric) == [0, 1, 1])
        #expect(batch.rejects.map(\.payload) == [[0, stray]])
        #expect(batch.rejects.map(\.reason) == ["its decoder gave metric \(stray), and the stream has 2"])
    }
}
