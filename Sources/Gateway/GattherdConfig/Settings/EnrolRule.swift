public import GattherdGATT
public import GattherdModel

/// One element of `enrol`: peripherals that become devices without being named one by one.
public struct EnrolRule: Hashable, Sendable {
    /// What a peripheral must have; at least one is not `nil`, and all that are not must hold.
    public struct Match: Hashable, Sendable {
        /// Advertised, or that of data that it advertises.
        public var service: BluetoothUUID?
        /// What it calls itself.
        public var name: NamePattern?
        /// In dBm.
        public var rssiAtLeast: Int?
    }

    private static let addressPart = "{address}"
    private static let profilePart = "{profile}"

    public var match: Match
    /// Contains `{address}` once, which makes it unique, and perhaps `{profile}`.
    public var name: String
    public var profiles: [Located<String>]?
    /// After how long of not being heard a device is let go of.
    public var forgetAfter = RetentionPeriod.atLeast(.seconds(30 * 86_400))

    /// True when the names that it gives depend on what serves the device.
    public var needsProfile: Bool { name.contains(Self.profilePart) }

    /// Whether a peripheral has all that is asked for; what is not known of it does not hold.
    ///
    /// - Parameters:
    ///   - services: What it advertises.
    ///   - peripheralName: What it calls itself.
    ///   - rssi: In dBm.
    /// - Returns: True when it has all.
    public func admits(services: Set<BluetoothUUID>, named peripheralName: String?, rssi: Int?) -> Bool {
        let hasService = match.service.map { services.contains($0) } ?? true
        let hasName = match.name.map { pattern in peripheralName.map { pattern.fits($0) } ?? false } ?? true
        let isNear = match.rssiAtLeast.map { least in rssi.map { $0 >= least } ?? false } ?? true
        return hasService && hasName && isNear
    }

    /// The name of a new device; `nil` when it would be no slug, or the rule asks for a profile and there is none.
    public func deviceName(for address: BluetoothAddress, profile: String?) -> String? {
        guard profile != nil || !needsProfile else { return nil }
        let name = expanded(address, profile: profile ?? "")
        return Slug.isValid(name) ? name : nil
    }

    /// The same for rules that make the same of a peripheral, whichever they take.
    public var identity: String {
        ([name] + (profiles ?? []).map(\.value)).joined(separator: " ")
    }

    /// A device as the rule has it.
    public func device(named name: String, _ address: BluetoothAddress) -> DeviceSettings {
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
