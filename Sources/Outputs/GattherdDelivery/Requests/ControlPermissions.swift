/// The controls that may be set by MQTT.
public struct ControlPermissions: Hashable, Sendable {
    /// True if all controls of devices missing in ``devices`` may be set.
    public var isEverythingAllowed = true
    /// The controls of a device that may be set, by the device's name.
    public var devices: [String: Set<String>] = [:]

    public init() {}

    func allows(_ control: String, of device: String) -> Bool {
        guard let allowed = devices[device] else { return isEverythingAllowed }
        return allowed.contains(control)
    }
}
