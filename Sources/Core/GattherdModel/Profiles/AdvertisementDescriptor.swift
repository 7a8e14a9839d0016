public import GattherdGATT

/// The AD structure that contains a frame: Core Specification Supplement, Part A, "Data Types".
public enum AdvertisementSource: Hashable, Sendable {
    /// Manufacturer specific data with this company identifier.
    case manufacturer(UInt16)
    case serviceData(BluetoothUUID)
}

extension AdvertisementSource: CustomStringConvertible {
    /// The text form, for example `fcd2` for service data or `manufacturer 0499`.
    public var description: String {
        switch self {
        case .manufacturer(let company):
            "manufacturer " + Hexadecimal.text([UInt8(company >> 8), UInt8(truncatingIfNeeded: company)].span)
        case .serviceData(let uuid): uuid.description
        }
    }
}

/// An advertisement frame that a profile decodes, and the stream of its readings.
public struct AdvertisementDescriptor: Hashable, Sendable {
    public var source: SourcePattern
    /// Other parts of the device's advertisements, whose bytes come first in the payload.
    public var before: [AdvertisementPart] = []
    public var stream: String
    public var metrics: [MetricDescriptor]
    /// The allowed local names; empty for any.
    public var names: [NamePattern] = []
    /// The required first bytes; `nil` for any.
    ///
    /// Other payloads are ignored, not rejected.
    public var beginning: BytePattern?
    /// The allowed lengths in bytes; `nil` for any.
    public var length: ClosedRange<Int>?
    /// The time without an advertisement after which the device counts as absent.
    public var silence = Duration.seconds(300)
    /// The time after which an identical payload becomes a new reading.
    public var renewal = Duration.seconds(60)
    /// True if the metrics are all metrics of the format; a device sends a few of them.
    public var isOpen = false
    /// True if a field numbers the readings, so that repeated advertisements are recognised.
    public var isCounted = false

    public init(
        source: SourcePattern,
        stream: String,
        metrics: [MetricDescriptor]
    ) {
        self.source = source
        self.stream = stream
        self.metrics = metrics
    }
}

extension AdvertisementDescriptor {
    /// Returns the bytes that an advertisement has for the last part of the frame; `nil` if it does not match.
    public func contents(_ octets: [UInt8], from source: AdvertisementSource) -> [UInt8]? {
        guard let contents = self.source.contents(octets, from: source) else { return nil }
        return beginning?.fits(contents) == false ? nil : contents
    }

    /// True unless the device has another name.
    ///
    /// A device without a name may be any, except for frames of any manufacturer, which only the name distinguishes.
    public func admits(name: String?) -> Bool {
        guard !names.isEmpty else { return true }
        guard let name else { return source != .anyManufacturer }
        return names.contains { $0.fits(name) }
    }

    package func admits(length count: Int) -> Bool { length?.contains(count) != false }

    /// The index of the signal strength in a reading; `nil` if the frame has a metric of that name.
    public var signal: Int? {
        metrics.contains { $0.name == MetricDescriptor.signalStrength.name } ? nil : metrics.count
    }

    /// The words for all parts of the frame.
    public var sourceDescription: String {
        (before.map(\.source.description) + [source.description]).joined(separator: " + ")
    }
}

/// A pattern in which `*` matches any text, including none, and `?` one character.
public struct NamePattern: Hashable, Sendable {
    private let parts: [Substring]
    /// True if a `?` stands for any character.
    private let hasPlaceholders: Bool

    public init(_ text: String) {
        parts = text.split(separator: "*", omittingEmptySubsequences: false)
        hasPlaceholders = text.contains("?")
    }

    /// The number of characters that are neither `*` nor `?`.
    package var literalCount: Int { parts.reduce(0) { $0 + $1.count { $0 != "?" } } }

    public func fits(_ name: String) -> Bool {
        guard let first = parts.first, let last = parts.last else { return false }
        guard parts.count > 1 else { return isEqual(name[...], first) }
        guard name.count >= first.count + last.count, isEqual(name.prefix(first.count), first),
            isEqual(name.suffix(last.count), last)
        else { return false }
        var rest = name.dropFirst(first.count).dropLast(last.count)
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            guard let found = rest.indices.first(where: { isEqual(rest[$0...].prefix(part.count), part) }) else {
                return false
            }
            rest = rest[found...].dropFirst(part.count)
        }
        return true
    }

    private func isEqual(_ text: Substring, _ part: Substring) -> Bool {
        hasPlaceholders ? text.elementsEqual(part) { $1 == "?" || $0 == $1 } : text == part
    }
}

extension NamePattern: CustomStringConvertible {
    /// The pattern's text.
    public var description: String { parts.joined(separator: "*") }
}

/// The sender of advertisements, as decoders need it.
public struct Sender: Hashable, Sendable {
    public var address: BluetoothAddress
    /// The key of encrypted advertisements; `nil` if none is configured.
    public var key: BindKey?

    public init(address: BluetoothAddress, key: BindKey? = nil) {
        self.address = address
        self.key = key
    }
}

/// The key of a device's encrypted advertisements: 16 bytes, or 12 for formats that complete it.
public struct BindKey: Hashable, Sendable {
    public let octets: [UInt8]
    /// The comment beside the key; another comment resets the replay counter.
    public let remark: String

    /// Creates a key; `nil` unless there are 12 or 16 bytes.
    public init?(_ octets: [UInt8], remark: String = "") {
        guard octets.count == 12 || octets.count == 16 else { return nil }
        self.octets = octets
        self.remark = remark
    }

    /// True if the key has all 16 bytes, so that no format has to complete it.
    public var isComplete: Bool { octets.count == 16 }
}

extension BindKey: CustomStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The identity resolving key of a device with private addresses, as it is written: the most significant byte first.
public struct IdentityKey: Hashable, Sendable {
    public let octets: [UInt8]

    /// Creates a key; `nil` unless there are 16 bytes.
    public init?(_ octets: [UInt8]) {
        guard octets.count == 16 else { return nil }
        self.octets = octets
    }
}

extension IdentityKey: CustomStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The replay counter of one sender: payloads with a lower counter are rejected.
public struct ReplayCounter: Hashable, Sendable {
    /// The identity of the sender and its key.
    public let sender: String
    public let counter: UInt32

    public init(sender: String, counter: UInt32) {
        self.sender = sender
        self.counter = counter
    }
}
