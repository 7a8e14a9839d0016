/// One service of a connected peripheral.
public struct Service: Hashable, Sendable, Identifiable {
    let remote: RemoteService

    init(_ remote: RemoteService) {
        self.remote = remote
        characteristics = remote.characteristics.map { characteristic in
            Characteristic(characteristic, remote.descriptors.filter { $0.characteristic == characteristic })
        }
    }

    /// Tells two services of one UUID apart; holds until the table changes.
    public var id: String { remote.handle }
    public var uuid: BluetoothUUID { remote.uuid }
    /// False when it only makes sense inside another one.
    public var isPrimary: Bool { remote.isPrimary }
    public let characteristics: [Characteristic]

    /// The first of its characteristics with that UUID.
    public subscript(uuid: BluetoothUUID) -> Characteristic? { characteristics.first { $0.uuid == uuid } }

    /// True when `other` is part of it.
    public func includes(_ other: Service) -> Bool { remote.includes.contains(other.remote.handle) }
}

/// One characteristic of a connected peripheral; dies with the GATT table that it was read from.
public struct Characteristic: Hashable, Sendable, Identifiable {
    let remote: RemoteCharacteristic
    public let descriptors: [Descriptor]

    init(_ remote: RemoteCharacteristic, _ descriptors: [RemoteDescriptor]) {
        self.remote = remote
        self.descriptors = descriptors.map(Descriptor.init)
    }

    /// Names exactly this one.
    public var id: CharacteristicID { CharacteristicID(remote) }
    public var uuid: BluetoothUUID { remote.uuid }
    /// The UUID of the service that it is in.
    public var service: BluetoothUUID { remote.service }
    /// What may be done with it; empty when the platform does not say.
    public var properties: CharacteristicProperties { remote.properties }
}

/// One descriptor of a characteristic.
public struct Descriptor: Hashable, Sendable, Identifiable {
    let remote: RemoteDescriptor

    init(_ remote: RemoteDescriptor) {
        self.remote = remote
    }

    /// Tells two descriptors of one UUID apart; holds until the table changes.
    public var id: String { remote.handle }
    public var uuid: BluetoothUUID { remote.uuid }
}

/// How a value is written.
public enum WriteType: Hashable, Sendable {
    /// The peripheral says that it took the value, or why not.
    case withResponse
    /// The peripheral says nothing; the write waits until there is room for it.
    case withoutResponse
}

/// One value that a peripheral sent by itself.
public struct CharacteristicValue: Hashable, Sendable {
    public let characteristic: CharacteristicID
    public let octets: [UInt8]
    /// When it was received.
    public let time: Timestamp
}
