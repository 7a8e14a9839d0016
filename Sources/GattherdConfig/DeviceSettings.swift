public import GattherdGATT

/// How the notifications of a device are taken from BlueZ.
public enum NotifyChoice: String, Hashable, Sendable, CaseIterable {
    /// D-Bus signals, which queue in the bus while we stall.
    case signals
    /// A socket for each characteristic: cheaper, loses what does not fit into it.
    case socket
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
    /// Where the passkey is, when bonding needs one.
    public var pinFile: Located<String>?

    public init(name: Located<String>, address: Located<BluetoothAddress>) {
        self.name = name
        self.address = address
    }
}

/// One element of `enrol`: peripherals that become devices without being named one by one.
public struct EnrolRule: Hashable, Sendable {
    /// What a peripheral must have; at least one is not `nil`, and all that are not must hold.
    public struct Match: Hashable, Sendable {
        public var service: BluetoothUUID?
        /// What it calls itself; `*` stands for any text.
        public var name: String?
        /// In dBm.
        public var rssiAtLeast: Int?
    }

    public var match: Match
    /// Contains `{address}`, which makes it unique, and perhaps `{profile}`.
    public var name: String
    public var profiles: [Located<String>]?
}
