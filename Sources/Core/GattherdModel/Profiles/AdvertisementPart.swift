public import GattherdGATT

/// The AD structures that a part of a frame can come from.
public enum SourcePattern: Hashable, Sendable {
    /// Manufacturer specific data of one company, without its identifier.
    case manufacturer(UInt16)
    case serviceData(BluetoothUUID)
    /// Manufacturer specific data of several companies, with the two bytes of the identifier, little-endian.
    case manufacturers([UInt16])
    /// Manufacturer specific data with the two bytes that are a company identifier elsewhere.
    case anyManufacturer
}

extension SourcePattern {
    /// Returns the bytes that an advertisement has for this part; `nil` if it does not match.
    public func contents(_ octets: [UInt8], from source: AdvertisementSource) -> [UInt8]? {
        switch (self, source) {
        case (.manufacturer(let wanted), .manufacturer(let company)): wanted == company ? octets : nil
        case (.serviceData(let wanted), .serviceData(let uuid)): wanted == uuid ? octets : nil
        case (.manufacturers(let wanted), .manufacturer(let company)):
            wanted.contains(company) ? Self.identifier(company) + octets : nil
        case (.anyManufacturer, .manufacturer(let company)): Self.identifier(company) + octets
        case (.manufacturer, _), (.manufacturers, _), (.anyManufacturer, _), (.serviceData, _): nil
        }
    }

    private static func identifier(_ company: UInt16) -> [UInt8] {
        [UInt8(truncatingIfNeeded: company), UInt8(company >> 8)]
    }

    /// The sources that a passive scan can be restricted to; `nil` for any company.
    public var sources: [AdvertisementSource]? {
        switch self {
        case .manufacturer(let company): [.manufacturer(company)]
        case .serviceData(let uuid): [.serviceData(uuid)]
        case .manufacturers(let companies): companies.map { .manufacturer($0) }
        case .anyManufacturer: nil
        }
    }
}

extension SourcePattern {
    /// True if one AD structure can match both patterns.
    func mayBe(_ other: SourcePattern) -> Bool {
        guard let own = sources, let others = other.sources else {
            let isService = [self, other].contains { if case .serviceData = $0 { true } else { false } }
            return !isService
        }
        return !Set(own).isDisjoint(with: others)
    }
}

extension SourcePattern: CustomStringConvertible {
    /// The text form, for example `fcd2` for service data, `manufacturer 0499` or `manufacturer any`.
    public var description: String {
        guard let sources else { return "manufacturer any" }
        return sources.map(\.description).joined(separator: ", ")
    }
}

/// A part of a device's advertisements whose bytes come before the others in the payload of a frame.
public struct AdvertisementPart: Hashable, Sendable {
    public var source: SourcePattern
    /// The required first bytes; `nil` for any.
    public var beginning: BytePattern?
    /// The number of bytes, so that the fields after them have a fixed place.
    public var length: Int

    public init(source: SourcePattern, beginning: BytePattern? = nil, length: Int) {
        self.source = source
        self.beginning = beginning
        self.length = length
    }

    /// Returns the bytes that an advertisement has for this part; `nil` if it does not match.
    public func contents(_ octets: [UInt8], from source: AdvertisementSource) -> [UInt8]? {
        guard let contents = self.source.contents(octets, from: source), contents.count == length else { return nil }
        return beginning?.fits(contents) == false ? nil : contents
    }
}
