import GattherdGATT
import ProfileKit

/// The metrics of Battery Level.
enum BatteryLevel: Int, MetricSet {
    case level

    var metric: Metric { Metric("battery_level", unit: "%") }

    static let tests = [
        DecodingTest("5F", expect: ["battery_level": 95]),
        DecodingTest("FF", expect: ["battery_level": nil]),
        DecodingTest("65", reject: "battery_level is 101, outside 0 to 100"),
    ]
}

extension HeartRateProfile {
    /// Decodes Battery Level (GATT Specification Supplement); devices send 255 for unknown.
    static func batteryLevel(
        _ payload: inout PayloadCursor,
        _ samples: Samples<BatteryLevel>
    ) throws(PayloadError) {
        switch try payload.u8() {
        case let level where level <= 100: samples.emit(.level, level)
        case 0xFF: samples.emitUnknown(.level)
        case let level: throw .invalid(reason: "battery_level is \(level), outside 0 to 100")
        }
    }
}
