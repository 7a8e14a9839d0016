import GattherdModel

/// Metrics as Home Assistant's sensors, binary sensors and events.
extension HomeAssistant {
    func sensors(of device: DeviceDescription, _ batched: Set<String>) -> [HomeAssistantComponent] {
        let names = device.streams.flatMap { $0.metrics.map(\.name) }
        let battery = BatteryChoice(device)
        return device.streams.flatMap { stream in
            // The signal strength has a diagnostic sensor of its own.
            stream.metrics.filter { $0 != .signalStrength }.map { metric in
                let isUnique = names.count { $0 == metric.name } == 1
                let entity = Entity(
                    metric: metric,
                    stream: stream,
                    name: isUnique ? metric.name : "\(stream.name)_\(metric.name)",
                    isBatched: batched.contains(stream.name),
                    isBattery: battery.isChosen(metric, of: stream)
                )
                return component(entity, of: device)
            }
        }
    }

    /// A metric that becomes an entity.
    private struct Entity {
        let metric: MetricDescriptor
        let stream: DeviceDescription.Stream
        let name: String
        let isBatched: Bool
        /// True for the device's only battery.
        let isBattery: Bool

        /// The kind of entity; events without known types are sensors.
        var platform: String {
            switch (metric.kind, metric.domain) {
            case (.event, .boolean), (.event, .labels): "event"
            case (.state, .boolean) where !metric.isRepeated: "binary_sensor"
            default: "sensor"
            }
        }
    }

    private func component(_ entity: Entity, of device: DeviceDescription) -> HomeAssistantComponent {
        let key = HomeAssistantIdentity.key(stream: entity.stream.name, metric: entity.metric.name)
        var part = HomeAssistantComponent(key, entity.platform, of: owner(device), named: entity.name)
        part.set("state_topic", topics.reading(device.device, entity.stream.name))
        switch entity.metric.kind {
        case .gauge, .counter: describeNumber(entity, &part)
        case .state: describeState(entity, &part)
        case .event: describeEvent(entity, &part)
        }
        return part
    }

    private func describeNumber(_ entity: Entity, _ part: inout HomeAssistantComponent) {
        let meaning = HomeAssistantMeaning(of: entity.metric)
        let isFurtherBattery = meaning.deviceClass == "battery" && !entity.isBattery
        part.set("value_template", HomeAssistantTemplate.number(entity.metric, isBatched: entity.isBatched))
        part.set("unit_of_measurement", entity.metric.unit)
        part.set("device_class", isFurtherBattery ? nil : meaning.deviceClass)
        part.set("state_class", meaning.stateClass)
        if let precision = meaning.precision {
            part.set("suggested_display_precision", .plain(.integer(Int64(precision))))
        }
        part.set("icon", isFurtherBattery ? "mdi:battery" : meaning.icon)
        if meaning.deviceClass == "battery" { part.setDiagnostic() }
    }

    private func describeState(_ entity: Entity, _ part: inout HomeAssistantComponent) {
        let metric = entity.metric
        let reason = entity.stream.metrics.contains { $0.name + "_reason" == metric.name }
        let isFact = DeviceFacts.isFact(metric.name)
        if entity.platform == "binary_sensor" {
            describeBinary(entity, &part)
        } else {
            part.set("value_template", HomeAssistantTemplate.text(metric, isBatched: entity.isBatched))
            if case .labels(let labels) = metric.domain, !metric.isRepeated {
                part.set("device_class", "enum")
                part.set("options", .list(labels))
            }
            part.set("icon", HomeAssistantIcon.other(metric))
        }
        if reason || isFact { part.setDiagnostic(isHidden: true) }
    }

    private func describeBinary(_ entity: Entity, _ part: inout HomeAssistantComponent) {
        let found = HomeAssistantBinaryMeaning.deviceClass(entity.metric.name)
        let deviceClass = found == "battery" && !entity.isBattery ? nil : found
        part.set("value_template", HomeAssistantTemplate.boolean(entity.metric, isBatched: entity.isBatched))
        part.set("payload_on", "true")
        part.set("payload_off", "false")
        part.set("device_class", deviceClass)
        if deviceClass == nil { part.set("icon", HomeAssistantIcon.other(entity.metric)) }
        if ["battery", "battery_charging", "problem", "tamper"].contains(found) { part.setDiagnostic() }
    }

    private func describeEvent(_ entity: Entity, _ part: inout HomeAssistantComponent) {
        let (metric, isBatched) = (entity.metric, entity.isBatched)
        switch metric.domain {
        case .open:
            part.set("value_template", HomeAssistantTemplate.text(metric, isBatched: isBatched))
            part.set("force_update", .plain(.boolean(true)))
            part.set("icon", HomeAssistantIcon.other(metric))
        case .boolean:
            part.set("event_types", .list([metric.name]))
            part.set(
                "value_template",
                HomeAssistantTemplate.occurrence(metric, type: metric.name, isBatched: isBatched)
            )
            describeEventClass(metric, &part)
        case .labels(let labels):
            let types = labels.filter { !Self.rests.contains($0) }
            part.set("event_types", .list(types))
            part.set("value_template", HomeAssistantTemplate.event(metric, types: types, isBatched: isBatched))
            describeEventClass(metric, &part)
        }
    }

    /// The labels that mean "no event".
    private static let rests: Set<String> = ["none", "idle"]

    private func describeEventClass(_ metric: MetricDescriptor, _ part: inout HomeAssistantComponent) {
        let words = metric.name.split(separator: "_")
        let found = ["motion", "doorbell", "button"].first { words.contains(Substring($0)) }
        part.set("device_class", found)
        if found == nil { part.set("icon", HomeAssistantIcon.other(metric)) }
    }
}

/// The choice of one battery: Home Assistant shows one for each device.
private struct BatteryChoice {
    private let chosen: (stream: String, metric: String)?

    /// Prefers the Battery Service, then a level, then a flag.
    init(_ device: DeviceDescription) {
        let all = device.streams.flatMap { stream in stream.metrics.map { (stream: stream.name, metric: $0) } }
        let levels = all.filter {
            $0.metric.kind == .gauge && HomeAssistantMeaning(of: $0.metric).deviceClass == "battery"
        }
        let flags = all.filter {
            $0.metric.domain == .boolean && HomeAssistantBinaryMeaning.deviceClass($0.metric.name) == "battery"
        }
        let best = levels.first { $0.metric.name == "battery_level" } ?? levels.first ?? flags.first
        chosen = best.map { (stream: $0.stream, metric: $0.metric.name) }
    }

    func isChosen(_ metric: MetricDescriptor, of stream: DeviceDescription.Stream) -> Bool {
        chosen.map { $0.stream == stream.name && $0.metric == metric.name } ?? false
    }
}
