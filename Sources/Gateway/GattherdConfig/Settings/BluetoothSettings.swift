public import GattherdGATT

/// Which bus bluetoothd is on.
public enum BusChoice: Hashable, Sendable {
    case system
    case session
    /// A D-Bus address, for example `unix:path=/run/test-bus`.
    case address(String)
}

/// Which adapters are ours.
public enum AdapterChoice: Hashable, Sendable {
    case auto
    case only([BluetoothAddress])
}

/// The section `bluetooth`.
public struct BluetoothSettings: Hashable, Sendable {
    public var bus = BusChoice.system
    public var adapters = AdapterChoice.auto
    public var connectTimeout = Duration.seconds(20)
    public var keepsLinksOnStop = false
    /// How long a link of a full adapter lasts at least before it makes room for a device that waits; `nil`: for ever.
    public var rotate: Duration?
    /// An adapter without links that hears nothing, or connects nobody, may be switched off and on.
    public var mayPowerCycle = true

    public init() {}
}

/// The section `profiles`.
public struct ProfileSettings: Hashable, Sendable {
    /// Folders of `*.so` and `*.yaml`, or such files; `nil`: the installed folders.
    public var paths: [Located<String>]?

    public init() {}
}
