public import GattherdGATT

/// One service of a connected peripheral with its contents, valid until the GATT table changes.
public struct RemoteService: Hashable, Sendable {
    public let peripheral: PeripheralID
    public let uuid: BluetoothUUID
    /// The opaque identity of this service among services of one UUID.
    public let handle: String
    public let isPrimary: Bool
    /// The ``handle`` of each service that this one includes.
    public var includes: [String] = []
    public var characteristics: [RemoteCharacteristic] = []
    /// The descriptors of all its characteristics.
    public var descriptors: [RemoteDescriptor] = []

    public init(peripheral: PeripheralID, uuid: BluetoothUUID, handle: String, isPrimary: Bool) {
        self.peripheral = peripheral
        self.uuid = uuid
        self.handle = handle
        self.isPrimary = isPrimary
    }
}

/// One descriptor of a characteristic.
public struct RemoteDescriptor: Hashable, Sendable {
    public let characteristic: RemoteCharacteristic
    public let uuid: BluetoothUUID
    /// The opaque identity of this descriptor among descriptors of one UUID.
    public let handle: String

    public init(characteristic: RemoteCharacteristic, uuid: BluetoothUUID, handle: String) {
        self.characteristic = characteristic
        self.uuid = uuid
        self.handle = handle
    }
}

/// One characteristic of a connected peripheral; dies with the GATT table that it was read from.
public struct RemoteCharacteristic: Hashable, Sendable {
    public let peripheral: PeripheralID
    public let service: BluetoothUUID
    public let uuid: BluetoothUUID
    /// The opaque identity of this characteristic among characteristics of one UUID.
    public let handle: String
    public let properties: CharacteristicProperties

    public init(
        peripheral: PeripheralID,
        service: BluetoothUUID,
        uuid: BluetoothUUID,
        handle: String,
        properties: CharacteristicProperties
    ) {
        self.peripheral = peripheral
        self.service = service
        self.uuid = uuid
        self.handle = handle
        self.properties = properties
    }
}
