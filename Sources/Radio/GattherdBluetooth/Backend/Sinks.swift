public import GattherdGATT
public import GattherdModel

/// The subscriber's number of a subscription, passed with each value.
public struct SubscriptionToken: Hashable, Sendable {
    public let value: UInt64

    public init(_ value: UInt64) {
        self.value = value
    }
}

/// A sink of values on the central's thread; must not block or call the central.
public protocol NotificationSink: AnyObject, Sendable {
    /// - Parameters:
    ///   - octets: The value; borrowed for the call.
    ///   - token: The subscription.
    ///   - time: The time of reception.
    func receive(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp)

    /// Receives a value that another client may have read, so that it may be no notification.
    func receiveRead(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp)

    /// Passes the received values on, because no more are available now.
    func flush()
}

extension NotificationSink {
    /// Receives the value as a notification: the device sent it in any case.
    public func receiveRead(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
        receive(octets, for: token, at: time)
    }

    public func flush() {}
}

/// The path of values from BlueZ.
public enum NotificationPath: Hashable, Sendable {
    /// D-Bus signals, which queue in the bus while this program stalls.
    case signals
    /// A socket of our own: cheaper, but values beyond 278 unread ones are lost.
    case socket
}

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

    /// The part that repetitions share: nearly all advertisements repeat the last one of their peripheral.
    private final class Content: Hashable, Sendable {
        let name: String?
        let services: [BluetoothUUID]
        let frames: [Frame]

        init(_ name: String?, _ services: [BluetoothUUID], _ frames: [Frame]) {
            (self.name, self.services, self.frames) = (name, services, frames)
        }

        static func == (left: Content, right: Content) -> Bool {
            left === right
                || left.name == right.name && left.services == right.services && left.frames == right.frames
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(name)
            hasher.combine(services)
            hasher.combine(frames)
        }
    }

    public var peripheral: PeripheralID
    /// The signal strength in dBm; `nil` if the platform did not report it.
    public var rssi: Int?
    private let content: Content

    /// The name in this or an earlier advertisement.
    public var name: String? { content.name }
    /// The services in this or an earlier advertisement.
    public var services: [BluetoothUUID] { content.services }
    public var frames: [Frame] { content.frames }

    public init(
        peripheral: PeripheralID,
        name: String? = nil,
        rssi: Int? = nil,
        services: [BluetoothUUID] = [],
        frames: [Frame]
    ) {
        self.peripheral = peripheral
        self.rssi = rssi
        content = Content(name, services, frames)
    }

    /// Returns the advertisement with other frames.
    package func with(_ frames: [Frame]) -> Self {
        guard frames != self.frames else { return self }
        return Self(peripheral: peripheral, name: name, rssi: rssi, services: services, frames: frames)
    }

    /// True if both have the same name, services and frames; immediate if one is a copy of the other.
    package func hasContent(of other: Self) -> Bool { content == other.content }
}

/// A sink of advertisements on the central's thread; must not block or call the central.
public protocol AdvertisementSink: AnyObject, Sendable {
    func receive(_ advertisement: HeardAdvertisement, at time: Timestamp)

    /// Passes the received advertisements on, because no more are available now.
    func flush()
}

extension AdvertisementSink {
    public func flush() {}
}

/// A subscription to the advertisements of some peripherals.
public struct AdvertisementWatch: Sendable {
    public let addresses: Set<BluetoothAddress>
    /// The parts of the advertisements that are wanted.
    public let sources: Set<AdvertisementSource>
    /// True if every payload differs from the last, so that a passive scan, which omits repetitions, loses nothing.
    public let hasChangingPayloads: Bool
    /// True if advertisements of all resolvable private addresses are wanted too.
    public let includesResolvable: Bool
    /// True if the advertisements of all peripherals are wanted.
    public let includesAll: Bool
    /// The addresses whose every advertisement is an event of the central too; `nil` for all.
    ///
    /// Other peripherals that only advertise cause an event at most every two seconds.
    public let promptAddresses: Set<BluetoothAddress>?
    public let sink: any AdvertisementSink

    public init(
        addresses: Set<BluetoothAddress>,
        sources: Set<AdvertisementSource>,
        hasChangingPayloads: Bool = false,
        includesResolvable: Bool = false,
        includesAll: Bool = false,
        promptAddresses: Set<BluetoothAddress>? = nil,
        sink: any AdvertisementSink
    ) {
        self.addresses = addresses
        self.sources = sources
        self.hasChangingPayloads = hasChangingPayloads
        self.includesResolvable = includesResolvable
        self.includesAll = includesAll
        self.promptAddresses = promptAddresses
        self.sink = sink
    }
}
