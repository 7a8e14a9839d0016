package import GattherdGATT
package import GattherdModel

/// The way BlueZ delivers a device's notifications.
package enum NotifyChoice: String, Hashable, Sendable, CaseIterable {
    /// D-Bus signals, which queue in the bus while gattherd stalls.
    case signals
    /// A socket for each characteristic: cheaper, but a full socket loses notifications.
    case socket
}

/// The pairing method of a device.
package enum PairingChoice: String, Hashable, Sendable, CaseIterable {
    case never
    /// Just Works, once an operation needs encryption.
    case onDemand = "on_demand"
    /// Just Works, right after the connect.
    case justWorks = "just_works"
    /// Numeric comparison, confirmed without comparing the numbers.
    case compare
    /// Passkey entry with the passkey in `pin_file`.
    case passkey
}

/// The reaction to a device that has lost its bond.
package enum BondLossChoice: String, Hashable, Sendable, CaseIterable {
    /// The link fails until a user removes the bond.
    case fail
    /// The bond is removed and the device pairs again.
    case repair
}

/// The key `silence` of a device.
package struct SilenceSettings: Hashable, Sendable {
    /// The limit for all streams, or for the advertisements of a sensor; `nil`: that of its profiles.
    package var all: Located<SilenceLimit>?
    /// The settings by stream.
    package var streams: [Located<String>: SilenceLimit] = [:]

    package init() {}

    /// The time without an advertisement after which the device is offline; `nil`: that of its profile.
    package var duration: Duration? {
        guard case .stated(let duration)? = all?.value else { return nil }
        return duration
    }
}

/// One element of `devices`.
package struct DeviceSettings: Hashable, Sendable {
    /// The device's name, a slug.
    package var name: Located<String>
    package var address: Located<BluetoothAddress>
    /// The name for people; `nil`: ``name``.
    package var title: String?
    /// The room or place of the device, for people.
    package var area: String?
    /// A remark about the device, for people.
    package var note: String?
    /// The names of its profiles; `nil`: every profile that matches its services.
    package var profiles: [Located<String>]?
    /// The only adapter that may be used; `nil`: any.
    package var adapter: Located<BluetoothAddress>?
    /// The gateways that may own the device, the one that it belongs to first; `nil`: all.
    package var gateways: [Located<String>]?
    /// The delivery of notifications; `nil`: that of the profile.
    package var notify: NotifyChoice?
    package var pairing = PairingChoice.onDemand
    /// The file with the passkey; required if ``pairing`` is ``PairingChoice/passkey``.
    package var pinFile: Located<String>?
    package var onBondLoss = BondLossChoice.fail
    /// The file with the key of its encrypted advertisements.
    package var bindKeyFile: Located<String>?
    /// The file with the identity resolving key of its private addresses.
    package var irkFile: Located<String>?
    /// The limits of its silence.
    package var silence = SilenceSettings()
    /// Options of its profiles by name, for example the circumference of a wheel.
    package var options: [String: Located<Int64>] = [:]
    package var publish = DevicePublishSettings()
    /// The controls that MQTT may set; `nil`: all controls of its profiles.
    package var controls: [Located<String>]?
    /// The ``EnrolRule/identity`` of the rule that made the device; `nil` for a configured device.
    package var rule: String?

    package init(name: Located<String>, address: Located<BluetoothAddress>) {
        self.name = name
        self.address = address
    }
}
