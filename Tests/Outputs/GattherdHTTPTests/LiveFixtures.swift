import GattherdGATT
import GattherdModel

/// Streams, links and descriptions of the tests' devices.
enum LiveFixtures {
    static let time = Timestamp(microseconds: 1_795_230_000_000_000)

    static func stream(
        _ device: String = "strap",
        profile: String = "heart-rate",
        metrics: [MetricDescriptor] = pulse
    ) -> StreamDefinition {
        StreamDefinition(device: device, profile: profile, stream: "heart_rate", metrics: metrics)
    }

    static let pulse = [
        MetricDescriptor(name: "heart_rate", unit: "bpm"), MetricDescriptor(name: "sensor_contact", kind: .state),
        MetricDescriptor(name: "rr_interval", unit: "s", isRepeated: true),
    ]

    /// Returns a batch of one reading with these samples.
    static func batch(_ stream: StreamDefinition, _ samples: [Sample]) -> ReadingBatch {
        var batch = ReadingBatch()
        batch.samples = samples
        batch.readings = [Reading(stream: stream, time: time, source: .notify, samples: samples.indices)]
        return batch
    }

    /// A stream with a battery level and the signal strength, as a format of advertisements has.
    static func battery(_ stream: String) -> StreamDefinition {
        StreamDefinition(
            device: "strap",
            profile: "test",
            stream: stream,
            metrics: [MetricDescriptor(name: "battery_level", unit: "%"), .signalStrength]
        )
    }

    /// A device that has these streams of ``battery(_:)``.
    static func description(batteries streams: [String]) -> DeviceDescription {
        let streams = streams.map { DeviceDescription.Stream(name: $0, metrics: battery($0).metrics) }
        return DeviceDescription(
            device: "strap",
            address: "C0:FF:EE:00:00:01",
            streams: streams,
            profiles: ["test"]
        )
    }

    static func link(_ device: String, _ state: LinkState, _ reason: LinkReason? = nil) -> LinkStatus {
        var status = LinkStatus(device: device, state: state, since: time)
        status.reason = reason
        return status
    }

    static var description: DeviceDescription {
        let dial = ControlDescriptor(
            name: "number",
            kind: .integer(0...255),
            characteristic: 0x2A39,
            throttle: .milliseconds(100),
            echo: "number"
        )
        let kinds: [ControlKind] = [.real(-0.5...0.5), .boolean, .choice(["eco", "turbo"]), .trigger]
        let others = kinds.enumerated().map { index, kind in
            ControlDescriptor(name: "c\(index)", kind: kind, characteristic: 0x2A39)
        }
        let stream = DeviceDescription.Stream(name: "heart_rate", metrics: pulse)
        return DeviceDescription(
            device: "strap",
            address: "C0:FF:EE:00:00:01",
            streams: [stream],
            controls: [dial] + others,
            profiles: ["heart-rate"]
        )
    }
}
