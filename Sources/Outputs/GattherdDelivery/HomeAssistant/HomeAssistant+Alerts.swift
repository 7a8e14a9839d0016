import GattherdModel

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
