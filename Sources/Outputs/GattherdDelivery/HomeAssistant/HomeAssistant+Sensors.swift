import GattherdModel

/// Metrics as Home Assistant's sensors.
extension HomeAssistant {
    func sensors(of device: DeviceDescription, _ batched: Set<String>) -> [HomeAssistantComponent] {
        let names = device.streams.flatMap { $0.metrics.map(\.name) }
        return device.streams.flatMap { stream in
            stream.metrics.map { metric in
                let isUnique = names.count { $0 == metric.name } == 1
                let name = isUnique ? metric.name : "\(stream.name)_\(metric.name)"
                return sensor(metric, of: stream, named: name, device, isBatched: batched.contains(stream.name))
            }
        }
    }

    private func sensor(
        _ metric: MetricDescriptor,
        of stream: DeviceDescription.Stream,
        named name: String,
        _ device: DeviceDescription,
        isBatched: Bool
    ) -> HomeAssistantComponent {
        var sensor = HomeAssistantComponent(
            "\(stream.name)-\(metric.name)",
            "sensor",
            of: device,
            named: name,
            in: self
        )
        sensor.set("state_topic", topics.reading(device.device, stream.name))
        switch metric.kind {
        case .gauge, .counter:
            let meaning = HomeAssistantMeaning(of: metric)
            sensor.set("value_template", HomeAssistantTemplate.number(metric, isBatched: isBatched))
            sensor.set("unit_of_measurement", metric.unit)
            sensor.set("device_class", meaning.deviceClass)
            sensor.set("state_class", meaning.stateClass)
            if meaning.deviceClass == "battery" { sensor.set("entity_category", "diagnostic") }
        case .state:
            sensor.set("value_template", HomeAssistantTemplate.text(metric, isBatched: isBatched))
            if stream.metrics.contains(where: { $0.name + "_reason" == metric.name }) {
                sensor.set("entity_category", "diagnostic")
                sensor.set("enabled_by_default", .plain(.boolean(false)))
            }
        case .event:
            sensor.set("value_template", HomeAssistantTemplate.text(metric, isBatched: isBatched))
            sensor.set("force_update", .plain(.boolean(true)))
        }
        return sensor
    }

    /// The diagnostic sensors of the link, which stay available while the device is offline.
    func diagnostics(of device: DeviceDescription) -> [HomeAssistantComponent] {
        var state = diagnostic("state", named: "connection", device)
        state.set("value_template", "{{ value_json.state }}")
        state.set("device_class", "enum")
        state.set("options", .list(LinkState.allCases.map(\.rawValue)))
        let descriptor = MetricDescriptor(name: "rssi", unit: "dBm")
        var rssi = diagnostic("rssi", named: "rssi", device)
        rssi.set("value_template", HomeAssistantTemplate.number(descriptor))
        rssi.set("unit_of_measurement", "dBm")
        rssi.set("device_class", "signal_strength")
        rssi.set("state_class", "measurement")
        rssi.set("enabled_by_default", .plain(.boolean(false)))
        return [state, rssi]
    }

    private func diagnostic(_ key: String, named name: String, _ device: DeviceDescription) -> HomeAssistantComponent {
        var part = HomeAssistantComponent("connection-\(key)", "sensor", of: device, named: name, in: self)
        part.set("state_topic", topics.connection(device.device))
        part.set("availability", .availability([topics.state]))
        part.set("entity_category", "diagnostic")
        return part
    }
}
