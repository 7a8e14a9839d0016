package import GattherdGATT
package import GattherdModel

/// One element of `enrol`: a rule by which peripherals become devices.
package struct EnrolRule: Hashable, Sendable {
    /// The conditions for a peripheral; at least one is set, and all that are set must hold.
    package struct Match: Hashable, Sendable {
        /// A service that it advertises, or the service of advertised data.
        package var service: BluetoothUUID?
        /// The pattern of its advertised name.
        package var name: NamePattern?
        /// The pattern of its brand and model, by which a profile identifies it.
        package var model: NamePattern?
        /// The lowest RSSI, in dBm.
        package var rssiAtLeast: Int?
    }

    private static let addressPart = "{address}"
    private static let profilePart = "{profile}"

    package var match: Match
    /// The template of device names: contains `{address}` once, and optionally `{profile}`.
    package var name: String
    package var profiles: [Located<String>]?
    /// The time without a sighting after which a device is removed.
    package var forgetAfter = RetentionPeriod.atLeast(.seconds(30 * 86_400))

    /// True if device names contain the name of a profile.
    package var needsProfile: Bool { name.contains(Self.profilePart) }

    /// True if a peripheral meets all conditions; an unknown property fails its condition.
    ///
    /// - Parameters:
    ///   - services: The services that it advertises.
    ///   - peripheralName: Its advertised name.
    ///   - rssi: Its RSSI, in dBm.
    ///   - model: Returns its brand and model; called if all other conditions hold.
    /// - Returns: True if all conditions hold.
    package func admits(
        services: Set<BluetoothUUID>,
        named peripheralName: String?,
        rssi: Int?,
        model: () -> String? = { nil }
    ) -> Bool {
        let hasService = match.service.map { services.contains($0) } ?? true
        let hasName = match.name.map { pattern in peripheralName.map { pattern.fits($0) } ?? false } ?? true
        let isNear = match.rssiAtLeast.map { least in rssi.map { $0 >= least } ?? false } ?? true
        guard hasService, hasName, isNear else { return false }
        return match.model.map { pattern in model().map { pattern.fits($0) } ?? false } ?? true
    }

    /// The name of a new device; `nil` if it is no slug, or the template needs a profile and there is none.
    package func deviceName(for address: BluetoothAddress, profile: String?) -> String? {
        guard profile != nil || !needsProfile else { return nil }
        let name = expanded(address, profile: profile ?? "")
        return Slug.isValid(name) ? name : nil
    }

    /// A key that is equal for rules that differ only in their match.
    package var identity: String {
        ([name] + (profiles ?? []).map(\.value)).joined(separator: " ")
    }

    /// Returns the settings of a device that the rule makes.
    package func device(named name: String, _ address: BluetoothAddress) -> DeviceSettings {
        var device = DeviceSettings(name: Located(name), address: Located(address))
        device.profiles = profiles
        device.rule = identity
        return device
    }

    private func expanded(_ address: BluetoothAddress, profile: String) -> String {
        let digits = address.description.lowercased().split(separator: ":").joined()
        return name.replacing(Self.addressPart, with: digits).replacing(Self.profilePart, with: profile)
    }
}
