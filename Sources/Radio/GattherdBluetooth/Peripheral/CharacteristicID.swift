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
