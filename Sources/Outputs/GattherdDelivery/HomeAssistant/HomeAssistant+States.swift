import GattherdModel

/// The link of a device: its state, its signal and a switch.
extension HomeAssistant {
    /// The entities of the link, which stay available while the device is offline.
    func link(of device: DeviceDescription) -> [HomeAssistantComponent] {
        let both = [state(of: device), signal(of: device)]
        return device.isConnectable ? both + [toggle(device)] : both
    }

    private func state(of device: DeviceDescription) -> HomeAssistantComponent {
        var state = component("connection-state", "sensor", named: "connection", device)
        let descriptor = MetricDescriptor(name: "state", kind: .state)
        state.set("value_template", HomeAssistantTemplate.text(descriptor))
        state.set("device_class", "enum")
        state.set("options", .list(LinkState.allCases.map(\.rawValue)))
        state.setDiagnostic()
        return state
    }

    private func signal(of device: DeviceDescription) -> HomeAssistantComponent {
        var rssi = component("connection-rssi", "sensor", named: "rssi", device)
        rssi.set("value_template", HomeAssistantTemplate.number(.signalStrength))
        rssi.set("unit_of_measurement", "dBm")
        rssi.set("device_class", "signal_strength")
        rssi.set("state_class", "measurement")
        rssi.set("suggested_display_precision", .plain(.integer(0)))
        rssi.setDiagnostic(isHidden: true)
        return rssi
    }

    /// The switch that connects, or disconnects by hand.
    private func toggle(_ device: DeviceDescription) -> HomeAssistantComponent {
        var toggle = component("connection-switch", "switch", named: "link", device)
        let held = "'off' if value_json.state == 'held' else 'on'"
        toggle.set("value_template", "{{ (\(held)) if value_json is defined else '' }}")
        toggle.set("state_on", "on")
        toggle.set("state_off", "off")
        toggle.set("command_topic", topics.request("link"))
        toggle.set("payload_on", #"{"device":"\#(device.device)","link":true}"#)
        toggle.set("payload_off", #"{"device":"\#(device.device)","link":false}"#)
        toggle.set("icon", "mdi:bluetooth-connect")
        toggle.set("entity_category", "config")
        return toggle
    }

    private func component(
        _ key: String,
        _ platform: String,
        named name: String,
        _ device: DeviceDescription
    ) -> HomeAssistantComponent {
        var part = HomeAssistantComponent(key, platform, of: owner(device), named: name)
        part.set("state_topic", topics.connection(device.device))
        part.set("availability", .availability([topics.state]))
        return part
    }
}

/// Alerts as Home Assistant's binary sensors.
extension HomeAssistant {
    /// The alert, which stays available while the device is offline.
    ///
    /// The template has the address: Home Assistant reads no old message again if a template changes.
    func alert(_ rule: AlertRule, of device: DeviceDescription) -> HomeAssistantComponent {
        let name = "alert_" + rule.name.replacing("-", with: "_")
        var part = HomeAssistantComponent("alert-\(rule.name)", "binary_sensor", of: owner(device), named: name)
        part.set("state_topic", topics.alerts)
        part.set("availability", .availability([topics.state]))
        let own = "selectattr('address', 'eq', '\(device.address)') | selectattr('alert', 'eq', '\(rule.name)')"
        part.set("value_template", "{{ 'ON' if value_json.alerts | \(own) | list else 'OFF' }}")
        part.set("device_class", "problem")
        return part
    }
}
