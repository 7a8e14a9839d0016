import GattherdGATT
import ProfileKit

/// The metrics of Body Sensor Location.
enum BodySensorLocation: Int, MetricSet {
    case location

    var metric: Metric { Metric("body_sensor_location", kind: .state) }

    static let labels = ["other", "chest", "wrist", "finger", "hand", "ear lobe", "foot"]

    static let tests = [
        DecodingTest("01", expect: ["body_sensor_location": "chest"]),
        DecodingTest("05", expect: ["body_sensor_location": "ear lobe"]),
        DecodingTest("07", expect: ["body_sensor_location": nil]),
    ]
}

extension HeartRateProfile {
    /// Decodes Body Sensor Location (GATT Specification Supplement); reserved values become unknown.
    static func bodySensorLocation(
        _ payload: inout PayloadCursor,
        _ samples: Samples<BodySensorLocation>
    ) throws(PayloadError) {
        let location = Int(try payload.u8())
        let labels = BodySensorLocation.labels
        if labels.indices.contains(location) {
            samples.emit(.location, labels[location])
        } else {
            samples.emitUnknown(.location)
        }
    }
}
