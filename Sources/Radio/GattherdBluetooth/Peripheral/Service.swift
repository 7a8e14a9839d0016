/// The identifier of a characteristic: its UUID, its UUID and its service's, or a discovered characteristic.
///
///     try await peripheral.read(UInt8.self, from: 0x2A19)
///     let number: CharacteristicID = 0x7a4b0001_999f_4717_b63a_066e06971f59
///
/// UUIDs identify the first such characteristic in the peripheral's table, and stay valid on every connection.
public struct CharacteristicID: Hashable, Sendable {
    public let uuid: BluetoothUUID
    /// `nil` for any service.
    public let service: BluetoothUUID?
    /// The platform's identity of a characteristic among those of one UUID; `nil` for the first.
    let handle: String?

    public init(_ uuid: BluetoothUUID, in service: BluetoothUUID? = nil) {
        self.uuid = uuid
        self.service = service
        handle = nil
    }

    init(_ uuid: BluetoothUUID, in service: BluetoothUUID, handle: String?) {
        (self.uuid, self.service, self.handle) = (uuid, service, handle)
    }

    init(_ characteristic: RemoteCharacteristic) {
        uuid = characteristic.uuid
        service = characteristic.service
        handle = characteristic.handle
    }

    func matches(_ characteristic: RemoteCharacteristic) -> Bool {
        guard uuid == characteristic.uuid, service == nil || service == characteristic.service else { return false }
        return handle == nil || handle == characteristic.handle
    }
}

extension CharacteristicID: ExpressibleByIntegerLiteral {
    /// Creates an identifier from a UUID literal, as `BluetoothUUID` does.
    public init(integerLiteral number: UInt128) {
        self.init(BluetoothUUID(integerLiteral: number))
    }
}

extension CharacteristicID: CustomStringConvertible {
    public var description: String { service.map { "\(uuid) in \($0)" } ?? "\(uuid)" }
}

/// One service of a connected peripheral.
public struct Service: Hashable, Sendable, Identifiable {
    let remote: RemoteService

    init(_ remote: RemoteService) {
        self.remote = remote
        characteristics = remote.characteristics.map { characteristic in
            Characteristic(characteristic, remote.descriptors.filter { $0.characteristic == characteristic })
        }
    }

    /// The identity of this service among services of one UUID, until the table changes.
    public var id: String { remote.handle }
    public var uuid: BluetoothUUID { remote.uuid }
    /// False for a secondary service, which is only included by others.
    public var isPrimary: Bool { remote.isPrimary }
    public let characteristics: [Characteristic]

    /// Returns the first characteristic with that UUID.
    public subscript(uuid: BluetoothUUID) -> Characteristic? { characteristics.first { $0.uuid == uuid } }

    /// Returns true if `other` is part of this service.
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

    /// The identifier of exactly this characteristic.
    public var id: CharacteristicID { CharacteristicID(remote) }
    public var uuid: BluetoothUUID { remote.uuid }
    /// The UUID of the characteristic's service.
    public var service: BluetoothUUID { remote.service }
    /// The allowed operations; empty if the platform does not report them.
    public var properties: CharacteristicProperties { remote.properties }
}

/// One descriptor of a characteristic.
public struct Descriptor: Hashable, Sendable, Identifiable {
    let remote: RemoteDescriptor

    init(_ remote: RemoteDescriptor) {
        self.remote = remote
    }

    /// The identity of this descriptor among descriptors of one UUID, until the table changes.
    public var id: String { remote.handle }
    public var uuid: BluetoothUUID { remote.uuid }
}

/// The kind of a write.
public enum WriteType: Hashable, Sendable {
    /// The peripheral confirms the value, or returns an error.
    case withResponse
    /// The peripheral does not answer; the write waits until there is room.
    case withoutResponse
}

/// One value that a peripheral sent by itself.
public struct CharacteristicValue: Hashable, Sendable {
    /// The identifier of exactly this characteristic, which equals none of a UUID alone: compare its `uuid`.
    public let characteristic: CharacteristicID
    public let octets: [UInt8]
    /// The time of reception.
    public let time: Timestamp
}
