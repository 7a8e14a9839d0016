import GattherdGATT
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdDaemon

/// The values of a stream that show a control what the device has.
struct EchoTests {
    /// Decodes pairs of octets: the index of a metric and its value.
    private final class PairDecoder: PayloadDecoder {
        func decode(_ payload: Span<UInt8>, characteristic: Int, into samples: inout [Sample]) throws(PayloadError) {
            var cursor = PayloadCursor(payload)
            while cursor.left > 0 {
                samples.append(Sample(metric: Int(try cursor.u8()), value: .integer(Int64(try cursor.u8()))))
            }
        }
    }

    private struct PairProfile: Profile {
        let name = "pairs"
        let title = "Metrics that some payloads lack"
        let services: [BluetoothUUID] = [0xAAAA]
        let characteristics: [CharacteristicDescriptor]
        let controls: [ControlDescriptor] = []
        let origin = "test"

        func makeDecoder() -> any PayloadDecoder { PairDecoder() }
        func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] { [] }
    }

    @Test(
        arguments: [
            ([[0, 5]], .integer(5)), ([[1, 7]], nil), ([[0, 5], [1, 7]], .integer(5)), ([[1, 7, 0, 6]], .integer(6)),
        ] as [([[UInt8]], SampleValue?)]
    )
    func `the first metric is the echo, also if a payload lacks it`(payloads: [[UInt8]], echo: SampleValue?) {
        let metrics = [MetricDescriptor(name: "mode"), MetricDescriptor(name: "level")]
        let descriptor = CharacteristicDescriptor(uuid: 0xBBBB, stream: "pairs", metrics: metrics)
        let newest = Locked<SampleValue?>(nil)
        let binding = StreamBinding(
            stream: StreamDefinition(device: "box", profile: "pairs", stream: "pairs", metrics: metrics),
            profile: PairProfile(characteristics: [descriptor]),
            characteristic: 0,
            decoder: 1,
            source: .notify,
            meter: DeviceMeter(),
            echo: newest
        )
        var decoder = BatchDecoder()
        var batch = ReadingBatch()
        for payload in payloads {
            let time = Timestamp(microseconds: 1_750_000_000_000_000)
            let entry = Intake.Buffer.Entry(binding: binding, time: time, bytes: 0..<payload.count)
            decoder.decode([entry], of: payload, into: &batch)
        }
        #expect(newest.withLock { $0 } == echo)
    }
}
