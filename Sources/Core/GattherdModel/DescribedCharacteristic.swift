public import GattherdGATT

/// A characteristic that no profile serves, and what its descriptors say about it.
public struct DescribedCharacteristic: Hashable, Sendable {
    public var service: BluetoothUUID
    public var uuid: BluetoothUUID
    /// The value of its User Description; `nil` when it has none.
    public var description: [UInt8]?
    /// The values of its Presentation Formats, in order.
    public var formats: [[UInt8]]
    /// It notifies or indicates.
    public var isNotifying: Bool
    public var isReadable: Bool

    public init(
        service: BluetoothUUID,
        uuid: BluetoothUUID,
        description: [UInt8]? = nil,
        formats: [[UInt8]],
        isNotifying: Bool,
        isReadable: Bool
    ) {
        self.service = service
        self.uuid = uuid
        self.description = description
        self.formats = formats
        self.isNotifying = isNotifying
        self.isReadable = isReadable
    }
}

/// A profile made of what a peripheral says about itself.
public struct SelfDescription: Sendable {
    public let profile: any Profile
    /// What its descriptors say that cannot be, one line each.
    public let remarks: [String]

    public init(profile: any Profile, remarks: [String]) {
        self.profile = profile
        self.remarks = remarks
    }
}
