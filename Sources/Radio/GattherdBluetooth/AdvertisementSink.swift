public import GattherdGATT
public import GattherdModel

/// A received advertisement.
public struct HeardAdvertisement: Hashable, Sendable {
    /// The bytes of one company or one service.
    public struct Frame: Hashable, Sendable {
        public var source: AdvertisementSource
        public var octets: [UInt8]

        public init(_ source: AdvertisementSource, _ octets: [UInt8]) {
            self.source = source
            self.octets = octets
        }
    }

    public var peripheral: PeripheralID
    /// The name in this or an earlier advertisement.
    public var name: String?
    /// The signal strength in dBm; `nil` if the platform did not report it.
    public var rssi: Int?
    public var frames: [Frame]

    public init(peripheral: PeripheralID, name: String? = nil, rssi: Int? = nil, frames: [Frame]) {
        self.peripheral = peripheral
        self.name = name
        self.rssi = rssi
        self.frames = frames
    }
}

/// A receiver of advertisements on the central's thread; must not block or call the central.
public protocol AdvertisementSink: AnyObject, Sendable {
    func receive(_ advertisement: HeardAdvertisement, at time: Timestamp)
}

/// A subscription to the advertisements of some peripherals.
public struct AdvertisementWatch: Sendable {
    public let addresses: Set<BluetoothAddress>
    /// The parts of the advertisements that are wanted.
    public let sources: Set<AdvertisementSource>
    /// True if every payload differs from the last, so that a passive scan, which omits repetitions, loses nothing.
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
