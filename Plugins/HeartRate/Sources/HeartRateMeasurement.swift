import GattherdGATT
import ProfileKit

/// The metrics of Heart Rate Measurement.
enum HeartRateMeasurement: Int, MetricSet {
    case heartRate
    case sensorContact
    case energyExpended
    case rrInterval

    var metric: Metric {
        switch self {
        case .heartRate: Metric("heart_rate", unit: "bpm")
        case .sensorContact: Metric("sensor_contact", kind: .state, isBoolean: true)
        case .energyExpended: Metric("energy_expended", unit: "kJ", kind: .counter)
        case .rrInterval: Metric("rr_interval", unit: "s", isRepeated: true)
        }
    }

    static let tests = [
        DecodingTest("16 48 00 04", expect: ["heart_rate": 72, "sensor_contact": true, "rr_interval": [1]]),
        DecodingTest(
            "19 2C 01 E8 03 00 02 90 02",
            expect: ["heart_rate": 300, "energy_expended": 1000, "rr_interval": [0.5, 0.640625]]
        ),
        DecodingTest("06 4B", expect: ["heart_rate": 75, "sensor_contact": true]),
        DecodingTest("04 00", expect: ["heart_rate": nil, "sensor_contact": false]),
        DecodingTest("", reject: "truncated"),
        DecodingTest("16", reject: "truncated"),
        DecodingTest("01 48", reject: "truncated"),
        DecodingTest("10 48 00", reject: "truncated"),
    ]

    /// The flags in the first byte.
    struct Flags: OptionSet {
        let rawValue: UInt8

        static let wideRate = Flags(rawValue: 1 << 0)
        static let contact = Flags(rawValue: 1 << 1)
        static let contactSupported = Flags(rawValue: 1 << 2)
        static let energyExpended = Flags(rawValue: 1 << 3)
        static let rrIntervals = Flags(rawValue: 1 << 4)
    }
}

extension HeartRateProfile {
    /// Decodes Heart Rate Measurement (GATT Specification Supplement).
    static func heartRateMeasurement(
        _ payload: inout PayloadCursor,
        _ samples: Samples<HeartRateMeasurement>
    ) throws(PayloadError) {
        let flags = HeartRateMeasurement.Flags(rawValue: try payload.u8())
        let rate = flags.contains(.wideRate) ? try payload.u16() : UInt16(try payload.u8())
        let isOff = flags.contains(.contactSupported) && !flags.contains(.contact)

        // Sensors without skin contact send 0 for an unknown rate.
        if isOff && rate == 0 { samples.emitUnknown(.heartRate) } else { samples.emit(.heartRate, rate) }
        if flags.contains(.contactSupported) { samples.emit(.sensorContact, !isOff) }
        if flags.contains(.energyExpended) { samples.emit(.energyExpended, try payload.u16()) }
        while flags.contains(.rrIntervals), payload.left > 0 {
            samples.emit(.rrInterval, seconds(try payload.u16()))
        }
    }

    /// Converts 1/1024 s to seconds, rounded to microseconds.
    private static func seconds(_ ticks: UInt16) -> Double {
        (Double(ticks) * 1_000_000 / 1024).rounded() / 1_000_000
    }
}
