public import GattherdBluetooth
import GattherdGATT
import GattherdModel

/// The GATT table of a connected device, as the control socket carries it.
public struct GATTTableReply: Codable, Hashable, Sendable {
    public struct Service: Codable, Hashable, Sendable {
        var uuid: String
        var handle: String
        var isPrimary: Bool
        var includes: [String]
        var characteristics: [Characteristic]
    }

    public struct Characteristic: Codable, Hashable, Sendable {
        var uuid: String
        var handle: String
        var properties: UInt8
        var descriptors: [Descriptor]
    }

    public struct Descriptor: Codable, Hashable, Sendable {
        var uuid: String
        var handle: String
    }

    /// The addresses of the adapter that holds the link, and of the device.
    public let adapter: String
    public let address: String
    /// The peripheral's own name: untrusted text from the air.
    public let name: String?
    public let services: [Service]

    init(_ id: PeripheralID, name: String?, _ services: [RemoteService]) {
        adapter = id.adapter.description
        address = id.address.description
        self.name = name
        self.services = services.map { service in
            Service(
                uuid: service.uuid.description,
                handle: service.handle,
                isPrimary: service.isPrimary,
                includes: service.includes,
                characteristics: service.characteristics.map { characteristic in
                    Characteristic(
                        uuid: characteristic.uuid.description,
                        handle: characteristic.handle,
                        properties: characteristic.properties.rawValue,
                        descriptors: service.descriptors.filter { $0.characteristic == characteristic }
                            .map { Descriptor(uuid: $0.uuid.description, handle: $0.handle) }
                    )
                }
            )
        }
    }

    /// The peripheral; `nil` if an address is invalid.
    public var peripheral: PeripheralID? {
        guard let adapter = BluetoothAddress(adapter), let address = BluetoothAddress(address) else { return nil }
        return PeripheralID(adapter: adapter, address: address)
    }

    /// Returns the table in the types of the Bluetooth library, without entries whose UUID is invalid.
    public func remoteServices(of peripheral: PeripheralID) -> [RemoteService] {
        services.compactMap { service in
            guard let uuid = BluetoothUUID(service.uuid) else { return nil }
            var remote = RemoteService(
                peripheral: peripheral,
                uuid: uuid,
                handle: service.handle,
                isPrimary: service.isPrimary
            )
            remote.includes = service.includes
            for entry in service.characteristics {
                guard let characteristicUUID = BluetoothUUID(entry.uuid) else { continue }
                let characteristic = RemoteCharacteristic(
                    peripheral: peripheral,
                    service: uuid,
                    uuid: characteristicUUID,
                    handle: entry.handle,
                    properties: CharacteristicProperties(rawValue: entry.properties)
                )
                remote.characteristics.append(characteristic)
                remote.descriptors += entry.descriptors.compactMap { descriptor in
                    BluetoothUUID(descriptor.uuid).map {
                        RemoteDescriptor(characteristic: characteristic, uuid: $0, handle: descriptor.handle)
                    }
                }
            }
            return remote
        }
    }
}

/// The value of an attribute, as the control socket carries it.
public struct DeviceValue: Codable, Hashable, Sendable {
    /// The time of receipt, in microseconds since 1970 UTC.
    public let time: Int64
    public let hex: String

    init(_ octets: [UInt8], at time: Timestamp) {
        self.time = time.microseconds
        hex = Hexadecimal.text(octets.span)
    }

    public var octets: [UInt8]? { Hexadecimal.octets(hex) }
}

/// A failed GATT operation, as the control socket carries it.
public struct DeviceFailure: Codable, Hashable, Sendable {
    /// The name of the error's kind.
    let kind: String
    /// The ATT error code, if the peripheral gave one.
    let code: UInt8?
    let detail: String

    private static let kinds: [String: BluetoothError.Kind] = [
        "adapterUnavailable": .adapterUnavailable, "serviceUnavailable": .serviceUnavailable,
        "unknownPeripheral": .unknownPeripheral, "unknownAttribute": .unknownAttribute, "notConnected": .notConnected,
        "connectionFailed": .connectionFailed, "busy": .busy, "timedOut": .timedOut, "cancelled": .cancelled,
        "authentication": .authentication, "notSupported": .notSupported, "notPermitted": .notPermitted,
        "invalidLength": .invalidLength, "invalidOffset": .invalidOffset, "accessDenied": .accessDenied,
        "invalidValue": .invalidValue, "notificationsStuck": .notificationsStuck,
    ]

    init(_ error: BluetoothError) {
        detail = error.detail
        if case .att(let code) = error.kind {
            (kind, self.code) = ("att", code)
        } else {
            (kind, code) = (Self.kinds.first { $0.value == error.kind }?.key ?? "other", nil)
        }
    }

    /// The error in the types of the Bluetooth library.
    public var error: BluetoothError {
        BluetoothError(code.map { .att($0) } ?? Self.kinds[kind] ?? .other, detail)
    }
}
