// A profile in Swift, written for ABI 1.0.
import GattherdGATT
import ProfileKit

struct Thermometer: NativeProfile {
    static let name = "thermometer"
    static let title = "Thermometer"
    static let services: [BluetoothUUID] = [0x181A]
    static let characteristics: [ProfileCharacteristic<Self>] = [
        .init(
            0x2A6E,
            in: 0x181A,
            stream: "temperature",
            subscribe: .notify,
            .required,
            silence: .seconds(30),
            tests: tests
        ) {
            (profile: inout Thermometer, payload, samples: Samples<Metrics>) throws(PayloadError) in
            profile.count += 1
            samples.emit(.temperature, Double(try payload.i16()) / 100)
            samples.emit(.count, profile.count)
        }
    ]
    static let controls = [
        Control("interval", 0x2A21, takes: .integer(1...60, as: UInt16.self), unit: "s", throttle: .milliseconds(100)),
        Control("reset", 0x2A39, takes: .trigger(writes: [1]), answer: Answer(ok: "81 00")),
    ]
    static let tasks: [ProfileTask] = [
        .listen(to: 0x2A52, in: 0x1808),
        .write(
            [1, 1],
            to: 0x2A52,
            in: 0x1808,
            isAcknowledged: false,
            answer: Answer(
                ok: "06 00 01 01",
                "06 00 01 06",
                refusals: ["06 00 01 ??": "refused"],
                from: 0x2A55,
                within: .seconds(60)
            ),
            isRequired: true,
            resume: ResumePoint(after: Metrics.count, of: "temperature", prefix: [1, 3], width: 2)
        ),
    ]

    static let tests = [
        DecodingTest("C4 09", "C4 09", expect: ["temperature": 25, "count": 2]),
        DecodingTest("C4", reject: "truncated"),
    ]

    private var count = 0

    enum Metrics: Int, MetricSet {
        case temperature
        case count

        var metric: Metric {
            switch self {
            case .temperature: Metric("temperature", unit: "°C")
            case .count: Metric("count", kind: .counter)
            }
        }
    }
}

private let exported = ExportedProfile(Thermometer.self)

@c(gattherd_profile_v1)
public func gattherdProfile(hostMinor: UInt32) -> UnsafeRawPointer { unsafe exported.table }
