/// Which controls may be set by MQTT.
public struct ControlPermissions: Hashable, Sendable {
    /// Those of devices that ``devices`` does not name.
    public var isEverythingAllowed = true
    /// The controls of a device that may be set, by the device's name.
    public var devices: [String: Set<String>] = [:]

    public init() {}

    func allows(_ control: String, of device: String) -> Bool {
        guard let allowed = devices[device] else { return isEverythingAllowed }
        return allowed.contains(control)
    }
}
