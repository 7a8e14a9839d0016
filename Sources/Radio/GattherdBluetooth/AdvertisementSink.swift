public import GattherdGATT
public import GattherdModel

/// An advertisement as it was heard.
public struct HeardAdvertisement: Hashable, Sendable {
    /// The octets of one company or one service.
    public struct Frame: Hashable, Sendable {
        public var source: AdvertisementSource
        public var octets: [UInt8]

        public init(_ source: AdvertisementSource, _ octets: [UInt8]) {
            self.source = source
            self.octets = octets
        }
    }

    public var peripheral: PeripheralID
    /// What it calls itself, in this or an earlier advertisement.
    public var name: String?
    /// In dBm; `nil` when the platform did not tell.
    public var rssi: Int?
    public var frames: [Frame]

    public init(peripheral: PeripheralID, name: String? = nil, rssi: Int? = nil, frames: [Frame]) {
        self.peripheral = peripheral
        self.name = name
        self.rssi = rssi
        self.frames = frames
    }
}

/// Takes advertisements on the central's thread: must not block, must not call back.
public protocol AdvertisementSink: AnyObject, Sendable {
    func receive(_ advertisement: HeardAdvertisement, at time: Timestamp)
}

/// Whose advertisements are wanted, and who takes them.
public struct AdvertisementWatch: Sendable {
    public let addresses: Set<BluetoothAddress>
    /// Where in them there is something that is wanted.
    public let sources: Set<AdvertisementSource>
    /// What they say is always something else, so that one may leave out what it said already, as a passive scan does.
    public let hasChangingPayloads: Bool
    public let sink: any AdvertisementSink

    public init(
        addresses: Set<BluetoothAddress>,
        sources: Set<AdvertisementSource>,
        hasChangingPayloads: Bool = false,
        sink: any AdvertisementSink
    ) {
        self.addresses = addresses
        self.sources = sources
        self.hasChangingPayloads = hasChangingPayloads
        self.sink = sink
    }
}
