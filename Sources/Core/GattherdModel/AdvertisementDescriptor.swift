public import GattherdGATT

/// Where in an advertisement a frame is: Core Specification Supplement, Part A, "Data Types".
public enum AdvertisementSource: Hashable, Sendable {
    /// Manufacturer specific data of a company.
    case manufacturer(UInt16)
    case serviceData(BluetoothUUID)
}

extension AdvertisementSource: CustomStringConvertible {
    /// `fcd2` for service data, `manufacturer 0499` for a company's.
    public var description: String {
        switch self {
        case .manufacturer(let company):
            "manufacturer " + Hexadecimal.text([UInt8(company >> 8), UInt8(truncatingIfNeeded: company)].span)
        case .serviceData(let uuid): uuid.description
        }
    }
}

/// One kind of frame that a profile decodes from advertisements, and the stream that its readings go to.
public struct AdvertisementDescriptor: Hashable, Sendable {
    public var source: AdvertisementSource
    public var stream: String
    public var metrics: [MetricDescriptor]
    /// What the peripheral calls itself, where it tells; `nil` for anything.
    public var name: NamePattern?
    /// How its octets begin, `nil` for anything: others are not this frame, and no reject either.
    public var beginning: BytePattern?
    /// How many octets it has; `nil` for any number.
    public var length: ClosedRange<Int>?
    /// After how long without an advertisement the device is away.
    public var silence = Duration.seconds(300)
    /// After how long the same octets are told as a new reading.
    public var renewal = Duration.seconds(60)
    /// Its metrics are all that the format knows, of which a device has few.
    public var isOpen = false
    /// It has a field that counts readings.
    public var isCounted = false

    public init(
        source: AdvertisementSource,
        stream: String,
        metrics: [MetricDescriptor]
    ) {
        self.source = source
        self.stream = stream
        self.metrics = metrics
    }
}

/// A text in which `*` stands for any text, also none.
public struct NamePattern: Hashable, Sendable {
    private let parts: [Substring]

    public init(_ text: String) {
        parts = text.split(separator: "*", omittingEmptySubsequences: false)
    }

    public func fits(_ name: String) -> Bool {
        guard let first = parts.first, let last = parts.last else { return false }
        guard parts.count > 1 else { return name == first }
        guard name.count >= first.count + last.count, name.hasPrefix(first), name.hasSuffix(last) else { return false }
        var rest = name.dropFirst(first.count).dropLast(last.count)
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            guard let found = rest.firstRange(of: part) else { return false }
            rest = rest[found.upperBound...]
        }
        return true
    }
}

extension NamePattern: CustomStringConvertible {
    /// As it is read.
    public var description: String { parts.joined(separator: "*") }
}

/// Who advertises, as far as a decoder needs to know.
public struct Sender: Hashable, Sendable {
    public var address: BluetoothAddress
    /// What its advertisements are encrypted with; `nil` when they are not, or nobody has told.
    public var key: BindKey?

    public init(address: BluetoothAddress, key: BindKey? = nil) {
        self.address = address
        self.key = key
    }
}

/// The secret that a device encrypts its advertisements with: 16 octets.
public struct BindKey: Hashable, Sendable {
    public let octets: [UInt8]
    /// What a person wrote beside it; with another remark the sender's counter begins anew.
    public let remark: String

    /// `nil` for another number of octets.
    public init?(_ octets: [UInt8], remark: String = "") {
        guard octets.count == 16 else { return nil }
        self.octets = octets
        self.remark = remark
    }
}

extension BindKey: CustomStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// How far the counter of one sender has come: a payload with a lower one is somebody's recording.
public struct ReplayCounter: Hashable, Sendable {
    /// Who counts, with which key.
    public let sender: String
    public let counter: UInt32

    public init(sender: String, counter: UInt32) {
        self.sender = sender
        self.counter = counter
    }
}
