import GattherdModel

/// Controls as Home Assistant's numbers, switches, selections and buttons.
extension HomeAssistant {
    func controls(of device: DeviceDescription, _ batched: Set<String>) -> [HomeAssistantComponent] {
        device.controls.map { control in
            var part = HomeAssistantComponent(
                control.name,
                control.kind.platform,
                of: owner(device),
                named: control.name
            )
            part.set("command_topic", topics.set(device.device, control.name))
            if control.kind != .trigger { watch(control, of: device, batched, &part) }
            describe(control, &part)
            return part
        }
    }

    private func describe(_ control: ControlDescriptor, _ part: inout HomeAssistantComponent) {
        switch control.kind {
        case .integer(let range):
            part.set("min", .plain(.integer(range.lowerBound)))
            part.set("max", .plain(.integer(range.upperBound)))
            part.set("step", .plain(.integer(1)))
            part.set("unit_of_measurement", control.unit)
        case .real(let range):
            part.set("min", .plain(.real(range.lowerBound)))
            part.set("max", .plain(.real(range.upperBound)))
            part.set("step", .plain(.real(Self.step(in: range))))
            part.set("unit_of_measurement", control.unit)
        case .boolean:
            part.set("payload_on", "true")
            part.set("payload_off", "false")
        case .choice(let labels):
            part.set("options", .list(labels))
            // Quoted, so that a label that looks like a number stays a text.
            part.set("command_template", "{{ value | tojson }}")
        case .trigger: break
        }
    }

    /// The step of a number: at least about a thousand steps in the range, but no step below Home Assistant's 0.001.
    private static func step(in range: ClosedRange<Double>) -> Double {
        var step = 1.0
        while step > 0.001, (range.upperBound - range.lowerBound) / step < 1000 { step /= 10 }
        return max(step, 0.001)
    }

    /// Sets the state topic: the device's echo, or else the last successful set.
    private func watch(
        _ control: ControlDescriptor,
        of device: DeviceDescription,
        _ batched: Set<String>,
        _ part: inout HomeAssistantComponent
    ) {
        let echo = device.streams.first { $0.name == control.echo }
        let metric =
            echo?.metrics.first { $0.name == control.name }
            ?? echo.flatMap { $0.metrics.count == 1 ? $0.metrics[0] : nil }
        if let echo, let metric {
            part.set("state_topic", topics.reading(device.device, echo.name))
            part.set("value_template", control.kind.template(metric, isBatched: batched.contains(echo.name)))
        } else {
            part.set("state_topic", topics.result(device.device, control.name))
            part.set("value_template", control.kind.template(MetricDescriptor(name: "value"), isBatched: false))
        }
    }
}

extension ControlKind {
    fileprivate var platform: String {
        switch self {
        case .integer, .real: "number"
        case .boolean: "switch"
        case .choice: "select"
        case .trigger: "button"
        }
    }

    fileprivate func template(_ metric: MetricDescriptor, isBatched: Bool) -> String {
        if case .boolean = self { return HomeAssistantTemplate.boolean(metric, isBatched: isBatched) }
        return HomeAssistantTemplate.number(metric, isBatched: isBatched)
    }
}
