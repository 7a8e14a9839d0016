package import GattherdGATT

/// The bus of bluetoothd.
package enum BusChoice: Hashable, Sendable {
    case system
    case session
    /// A D-Bus address, for example `unix:path=/run/test-bus`.
    case address(String)
}

/// The adapters that gattherd uses.
package enum AdapterChoice: Hashable, Sendable {
    case auto
    case only([BluetoothAddress])
}

/// The section `bluetooth`.
package struct BluetoothSettings: Hashable, Sendable {
    package var bus = BusChoice.system
    package var adapters = AdapterChoice.auto
    package var connectTimeout = Duration.seconds(20)
    package var keepsLinksOnStop = false
    /// The shortest time that a link of a full adapter lasts before a waiting device replaces it; `nil`: never.
    package var rotate: Duration?
    /// True if an adapter without links that hears or connects nothing may be powered off and on.
    package var mayPowerCycle = true

    package init() {}
}

/// The section `profiles`.
package struct ProfileSettings: Hashable, Sendable {
    /// Folders with `*.so` and `*.yaml` files, or such files; `nil`: the installed folders.
    package var paths: [Located<String>]?

    package init() {}
}
