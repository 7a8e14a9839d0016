import GattherdBluetooth

/// BlueZ's names on the bus.
enum BlueZ {
    static let service = "org.bluez"
    static let adapter = "org.bluez.Adapter1"
    static let device = "org.bluez.Device1"
    static let agentManager = "org.bluez.AgentManager1"
    static let gattService = "org.bluez.GattService1"
    static let characteristic = "org.bluez.GattCharacteristic1"
    static let descriptor = "org.bluez.GattDescriptor1"
    static let monitorManager = "org.bluez.AdvertisementMonitorManager1"
    static let monitor = "org.bluez.AdvertisementMonitor1"
    static let objectManager = "org.freedesktop.DBus.ObjectManager"
    static let properties = "org.freedesktop.DBus.Properties"

    /// The match rules: four, however many devices there are.
    static let matchRules = [
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
            + "arg0='org.bluez'",
        "type='signal',sender='org.bluez',interface='org.freedesktop.DBus.ObjectManager'",
        "type='signal',sender='org.bluez',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'",
        "type='signal',sender='org.bluez',interface='org.bluez.Device1',member='Disconnected'",
    ]

    /// The path without its last part; `/` at the top.
    static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    /// The last part of a path.
    static func name(of path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }
}

extension DisconnectReason {
    /// The reasons of `Device1.Disconnected`.
    init(blueZ name: String) {
        self =
            switch name {
            case "org.bluez.Reason.Timeout": .timedOut
            case "org.bluez.Reason.Local": .local
            case "org.bluez.Reason.Remote": .remote
            case "org.bluez.Reason.Authentication": .authentication
            case "org.bluez.Reason.Suspend", "org.bluez.Reason.LocalSuspend": .suspended
            default: .unknown
            }
    }
}

extension PairingMethod {
    /// BlueZ's name of a host that can do exactly this.
    var capability: String {
        switch self {
        case .justWorks: "NoInputNoOutput"
        case .passkey: "KeyboardOnly"
        case .compare: "DisplayYesNo"
        }
    }
}
