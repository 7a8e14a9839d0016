import GattherdBluetooth
import GattherdDBus
import GattherdGATT

/// One `org.bluez.GattService1` object.
struct ServiceObject: Hashable {
    let uuid: BluetoothUUID?
    let devicePath: String
    let isPrimary: Bool
    let includes: [String]

    init(path: String, _ changes: PropertyChanges) {
        uuid = changes["UUID"]?.string.flatMap { BluetoothUUID($0) }
        devicePath = changes["Device"]?.string ?? BlueZ.parent(of: path)
        isPrimary = changes["Primary"]?.bool ?? true
        includes = changes["Includes"]?.strings ?? []
    }
}

/// One `org.bluez.GattCharacteristic1` object.
struct CharacteristicObject: Hashable {
    let uuid: BluetoothUUID?
    let servicePath: String
    /// The properties; empty if the stack does not report them.
    let properties: CharacteristicProperties
    /// The ATT MTU of the link in bytes.
    private(set) var mtu: Int?

    init(path: String, _ changes: PropertyChanges) {
        uuid = changes["UUID"]?.string.flatMap { BluetoothUUID($0) }
        servicePath = changes["Service"]?.string ?? BlueZ.parent(of: path)
        properties = CharacteristicProperties(flags: changes["Flags"]?.strings ?? [])
        apply(changes)
    }

    mutating func apply(_ changes: PropertyChanges) {
        changes.update(&mtu, "MTU") { $0.int.flatMap { Self.mtus.contains($0) ? $0 : nil } }
    }

    /// The values of an ATT MTU: Core Specification, Vol 3, Part F, "Exchange MTU Request".
    private static let mtus = 23...Int(UInt16.max)
}

/// One `org.bluez.GattDescriptor1` object.
struct DescriptorObject: Hashable {
    let uuid: BluetoothUUID?
    let characteristicPath: String

    init(path: String, _ changes: PropertyChanges) {
        uuid = changes["UUID"]?.string.flatMap { BluetoothUUID($0) }
        characteristicPath = changes["Characteristic"]?.string ?? BlueZ.parent(of: path)
    }
}

extension CharacteristicProperties {
    /// Reads BlueZ's `Flags`; names without a bit of their own are ignored.
    init(flags: [String]) {
        self = flags.reduce(into: []) { properties, flag in
            switch flag {
            case "broadcast": properties.insert(.broadcast)
            case "read": properties.insert(.read)
            case "write-without-response": properties.insert(.writeWithoutResponse)
            case "write": properties.insert(.write)
            case "notify": properties.insert(.notify)
            case "indicate": properties.insert(.indicate)
            default: break
            }
        }
    }
}
