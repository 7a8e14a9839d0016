public import GattherdGATT
public import ProfileKit

/// A profile of one byte that can be read, notified and written: the service of the LeanDog BLE tutorial.
///
/// The tutorial's apps show the byte as a ratio from 0 to 1.
public struct NumberServiceProfile: NativeProfile {
    public static let name = "number-service"
    public static let title = "Number Service"
    public static let services = [BluetoothUUID(high: 0x7a4b_bfe6_999f_4717, low: 0xb63a_066e_0697_1f59)]

    public static let characteristics: [ProfileCharacteristic<Self>] = [
        .init(
            number,
            stream: "number",
            subscribe: .notify,
            [.readAtConnect, .required],
            tests: [
                DecodingTest("7F", expect: ["number": 127, "ratio": 0.498039]),
                DecodingTest("", reject: "truncated"),
                DecodingTest("01 02", reject: "too long"),
            ],
            decode: number
        )
    ]

    public static let controls = [
        Control(
            "number",
            number,
            takes: .integer(0...255, as: UInt8.self),
            throttle: .milliseconds(100),
            echo: "number"
        )
    ]

    static let number = BluetoothUUID(high: 0x7a4b_0001_999f_4717, low: 0xb63a_066e_0697_1f59)

    public init() {}

    enum Metrics: Int, MetricSet {
        case number
        case ratio

        var metric: Metric {
            switch self {
            case .number: Metric("number")
            case .ratio: Metric("ratio")
            }
        }
    }

    /// Decodes the number and its ratio to 255, with six decimals.
    ///
    /// Rejects longer values, which other projects use with the same UUID.
    static func number(_ payload: inout PayloadCursor, _ samples: Samples<Metrics>) throws(PayloadError) {
        let number = try payload.u8()
        try payload.end()
        samples.emit(.number, number)
        samples.emit(.ratio, (Double(number) / 255 * 1_000_000).rounded() / 1_000_000)
    }
}
