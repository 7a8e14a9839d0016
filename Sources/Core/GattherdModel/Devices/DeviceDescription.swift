public import GattherdGATT

/// The streams and controls that a connected device has.
public struct DeviceDescription: Hashable, Sendable {
    public struct Stream: Hashable, Sendable {
        public var name: String
        public var metrics: [MetricDescriptor]

        public init(name: String, metrics: [MetricDescriptor]) {
            self.name = name
            self.metrics = metrics
        }
    }

    /// The device's name.
    public var device: String
    /// The peripheral's address.
    public var address: String
    public var streams: [Stream]
    public var controls: [ControlDescriptor]
    /// The names of the profiles that decode it.
    public var profiles: [String]
    /// False for a sensor that only advertises, which has no link.
    public var isConnectable: Bool

    public init(
        device: String,
        address: String,
        streams: [Stream],
        controls: [ControlDescriptor] = [],
        profiles: [String] = [],
        isConnectable: Bool = true
    ) {
        self.device = device
        self.address = address
        self.streams = streams
        self.controls = controls
        self.profiles = profiles
        self.isConnectable = isConnectable
    }
}

/// A characteristic without a profile, and its descriptors.
public struct DescribedCharacteristic: Hashable, Sendable {
    public var service: BluetoothUUID
    public var uuid: BluetoothUUID
    /// The handle, which distinguishes it from others with the UUID; `nil` stands for any with the UUID.
    public var handle: String?
    /// The value of its User Description; `nil` if it has none.
    public var description: [UInt8]?
    /// The values of its Presentation Formats, in order.
    public var formats: [[UInt8]]
    /// True if it notifies or indicates.
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

/// A profile made from a peripheral's descriptors.
public struct SelfDescription: Sendable {
    public let profile: any Profile
    /// Problems with the descriptors, one line each.
    public let remarks: [String]

    public init(profile: any Profile, remarks: [String]) {
        self.profile = profile
        self.remarks = remarks
    }
}
