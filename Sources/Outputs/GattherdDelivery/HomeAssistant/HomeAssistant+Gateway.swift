import GattherdModel

/// The gateway as a device of Home Assistant, through which its devices are reached.
extension HomeAssistant {
    /// The gateway's identifier, which no device has.
    var gatewayIdentifier: String { "gattherd_\(gateway)_gateway" }

    /// The topic of the gateway's payload.
    var gatewayTopic: String { "\(prefix)/device/\(gatewayIdentifier)/config" }

    /// True for a payload of this gateway, or the start of one.
    func isGateway(_ payload: [UInt8]) -> Bool {
        payload.starts(with: JSONWriter.bytes { $0.gatewayStart(topics.state) })
    }

    /// The JSON object that describes the gateway.
    func gatewayPayload() -> [UInt8] {
        JSONWriter.bytes { writer in
            writer.gatewayStart(topics.state)
            writer.key("device")
            writer.beginObject()
            writer.texts([
                "identifiers": gatewayIdentifier, "name": "gattherd \(gateway)", "manufacturer": "gattherd",
                "model": "Bluetooth gateway", "sw_version": version, "configuration_url": configurationURL,
            ])
            writer.endObject()
            writeOrigin(to: &writer)
            writer.key("components")
            writer.beginObject()
            for part in gatewayComponents { part.write(to: &writer) }
            writer.endObject()
            writer.endObject()
        }
    }

    private var gatewayComponents: [HomeAssistantComponent] {
        [
            connectivity, problem,
            count("backlog", of: "value_json.outputs | sum(attribute='backlog')", icon: "mdi:tray-full"),
            count("ready_devices", of: "value_json.ready", icon: "mdi:bluetooth-connect"),
            versionSensor,
        ]
    }

    private var gatewayOwner: HomeAssistantOwner {
        HomeAssistantOwner(identifier: gatewayIdentifier, slug: "gattherd_\(gateway)")
    }

    /// The connection to the broker, which is known also while the gateway is offline.
    private var connectivity: HomeAssistantComponent {
        var part = HomeAssistantComponent("state", "binary_sensor", of: gatewayOwner, named: "connection")
        part.set("state_topic", topics.state)
        part.set("availability", .availability([]))
        part.set("payload_on", "online")
        part.set("payload_off", "offline")
        part.set("device_class", "connectivity")
        part.setDiagnostic()
        return part
    }

    private var problem: HomeAssistantComponent {
        var part = HomeAssistantComponent("problem", "binary_sensor", of: gatewayOwner, named: "output_behind")
        part.set("state_topic", topics.health)
        part.set("value_template", "{{ 'ON' if value_json.outputs | selectattr('behind') | list else 'OFF' }}")
        part.set("device_class", "problem")
        part.setDiagnostic()
        return part
    }

    private func count(_ name: String, of expression: String, icon: String) -> HomeAssistantComponent {
        var part = HomeAssistantComponent(name, "sensor", of: gatewayOwner, named: name)
        part.set("state_topic", topics.health)
        part.set("value_template", "{{ \(expression) }}")
        part.set("state_class", "measurement")
        part.set("icon", icon)
        part.setDiagnostic()
        return part
    }

    private var versionSensor: HomeAssistantComponent {
        var part = HomeAssistantComponent("version", "sensor", of: gatewayOwner, named: "version")
        part.set("state_topic", topics.info)
        part.set("value_template", "{{ value_json.version }}")
        part.set("icon", "mdi:tag-outline")
        part.setDiagnostic()
        return part
    }
}

extension JSONWriter {
    /// Writes the first members of a gateway's payload, which identify it.
    fileprivate mutating func gatewayStart(_ state: String) {
        beginObject()
        key("availability")
        list([state]) { $0.object([("topic", .text($1))]) }
    }
}
