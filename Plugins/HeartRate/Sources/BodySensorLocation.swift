import GattherdGATT
import ProfileKit

/// Where the sensor is worn.
enum BodySensorLocation: Int, MetricSet {
    case location

    var metric: Metric { Metric("body_sensor_location", kind: .state) }

    static let labels = ["other", "chest", "wrist", "finger", "hand", "ear lobe", "foot"]
}

extension HeartRateProfile {
    /// GATT Specification Supplement, "Body Sensor Location"; a reserved value is one that the device does not tell.
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
