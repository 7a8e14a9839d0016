public import GattherdGATT
public import ProfileKit

/// A profile of the Heart Rate Service, and of the Battery Service of the same device.
public struct HeartRateProfile: NativeProfile {
    public static let name = "heart-rate"
    public static let title = "Heart Rate Service"
    public static let services: [BluetoothUUID] = [0x180D]

    public static let characteristics: [ProfileCharacteristic<Self>] = [
        .init(
            0x2A37,
            stream: "heart_rate",
            subscribe: .notify,
            .required,
            tests: HeartRateMeasurement.tests,
            decode: heartRateMeasurement
        ),
        .init(
            0x2A38,
            stream: "body_sensor_location",
            .readAtConnect,
            tests: BodySensorLocation.tests,
            decode: bodySensorLocation
        ),
        .init(
            0x2A19,
            in: 0x180F,
            stream: "battery",
            subscribe: .notify,
            .readAtConnect,
            tests: BatteryLevel.tests,
            decode: batteryLevel
        ),
    ]

    public static let controls = [
        Control("reset_energy_expended", 0x2A39, takes: .trigger(writes: [0x01]))
    ]

    public init() {}
}
