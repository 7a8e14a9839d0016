public import GattherdGATT
public import GattherdModel

/// How the notifications of a device are taken from BlueZ.
public enum NotifyChoice: String, Hashable, Sendable, CaseIterable {
    /// D-Bus signals, which queue in the bus while we stall.
    case signals
    /// A socket for each characteristic: cheaper, loses what does not fit into it.
    case socket
}

/// How a device may pair.
public enum PairingChoice: String, Hashable, Sendable, CaseIterable {
    case never
    /// Without proof, when something that is asked of it needs encryption.
    case onDemand = "on_demand"
    /// Without proof, before anything is asked of it.
    case justWorks = "just_works"
    /// By comparing numbers that nobody looks at.
    case compare
    /// With the passkey in its `pin_file`.
    case passkey
}

/// What to do about a device that has lost its bond.
public enum BondLossChoice: String, Hashable, Sendable, CaseIterable {
    /// Let its link fail until a person forgets the bond.
    case fail
    /// Forget the bond and pair again.
    case repair
}

/// The key `silence` of a device.
public struct SilenceSettings: Hashable, Sendable {
    /// For all streams, or for the advertisements of a device that is listened to; `nil`: as its profiles say.
    public var all: Located<SilenceLimit>?
    /// By stream.
    public var streams: [Located<String>: SilenceLimit] = [:]

    public init() {}

    /// After how long without an advertisement the device is offline; `nil`: as its profile says.
    public var duration: Duration? {
        guard case .stated(let duration)? = all?.value else { return nil }
        return duration
    }
}

/// One element of `devices`.
public struct DeviceSettings: Hashable, Sendable {
    /// A slug.
    public var name: Located<String>
    public var address: Located<BluetoothAddress>
    /// Names of profiles; `nil`: each one that matches the device's services.
    public var profiles: [Located<String>]?
    /// The only adapter that may be used; `nil`: the best.
    public var adapter: Located<BluetoothAddress>?
    /// How notifications come; `nil`: as the profile says.
    public var notify: NotifyChoice?
    public var pairing = PairingChoice.onDemand
    /// Where the passkey is; not `nil` when ``pairing`` is ``PairingChoice/passkey``.
    public var pinFile: Located<String>?
    public var onBondLoss = BondLossChoice.fail
    /// Where the key is that its advertisements are encrypted with.
    public var bindKeyFile: Located<String>?
    /// How long nothing may come from it.
    public var silence = SilenceSettings()
    /// The options that its profiles need, such as the circumference of a wheel, by name.
    public var options: [String: Located<Int64>] = [:]
    public var publish = DevicePublishSettings()
    /// The controls that may be set by MQTT; `nil` for all that its profiles have.
    public var controls: [Located<String>]?
    /// ``EnrolRule/identity`` of the rule that made it a device; `nil` when it is named.
    public var rule: String?

    public init(name: Located<String>, address: Located<BluetoothAddress>) {
        self.name = name
        self.address = address
    }
}
