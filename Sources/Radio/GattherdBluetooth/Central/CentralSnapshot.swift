/// The links, subscriptions and scans of a central, to be restored in the next run of the program.
public struct CentralSnapshot: Hashable, Sendable {
    public struct Entry: Hashable, Sendable {
        public var id: PeripheralID
        /// True if there was a link.
        public var wasConnected: Bool
        /// True if the central was connecting the peripheral by itself: kept, or lost and reconnecting.
        public var wasReconnecting: Bool
        /// The characteristics that were subscribed.
        ///
        /// UUIDs identify the first characteristic of their service, any other one also needs the platform's identity.
        public var notifying: [CharacteristicID]

        public init(
            id: PeripheralID,
            wasConnected: Bool,
            wasReconnecting: Bool = false,
            notifying: [CharacteristicID] = []
        ) {
            self.id = id
            self.wasConnected = wasConnected
            self.wasReconnecting = wasReconnecting
            self.notifying = notifying
        }
    }

    /// A scan that was running.
    public struct ScanEntry: Hashable, Sendable, Codable {
        public var filter: ScanFilter
        /// True for each advertisement, false for one of each peripheral.
        public var allowsDuplicates: Bool

        public init(filter: ScanFilter, allowsDuplicates: Bool) {
            self.filter = filter
            self.allowsDuplicates = allowsDuplicates
        }
    }

    public var peripherals: [Entry]
    public var scans: [ScanEntry]

    public init(peripherals: [Entry], scans: [ScanEntry] = []) {
        self.peripherals = peripherals
        self.scans = scans
    }
}

extension CentralSnapshot: Codable {
    private enum CodingKeys: String, CodingKey {
        case peripherals
        case scans
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        peripherals = try container.decode([Entry].self, forKey: .peripherals)
        scans = try container.decodeIfPresent([ScanEntry].self, forKey: .scans) ?? []
    }
}

extension CentralSnapshot.Entry: Codable {
    private enum CodingKeys: String, CodingKey {
        case adapter
        case address
        case wasConnected
        case wasReconnecting
        case notifying
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = PeripheralID(
            adapter: try container.address(.adapter),
            address: try container.address(.address)
        )
        wasConnected = try container.decode(Bool.self, forKey: .wasConnected)
        wasReconnecting = try container.decodeIfPresent(Bool.self, forKey: .wasReconnecting) ?? false
        notifying = try container.decode([CharacteristicID].self, forKey: .notifying)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id.adapter.description, forKey: .adapter)
        try container.encode(id.address.description, forKey: .address)
        try container.encode(wasConnected, forKey: .wasConnected)
        try container.encode(wasReconnecting, forKey: .wasReconnecting)
        try container.encode(notifying, forKey: .notifying)
    }
}

extension ScanFilter: Codable {
    private enum CodingKeys: String, CodingKey {
        case services
        case name
        case namePrefix
        case minimumRSSI
        case addresses
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        services = try container.decode([CharacteristicID].self, forKey: .services).map(\.uuid)
        name = try container.decodeIfPresent(String.self, forKey: .name)
        namePrefix = try container.decodeIfPresent(String.self, forKey: .namePrefix)
        minimumRSSI = try container.decodeIfPresent(Int.self, forKey: .minimumRSSI)
        guard let addresses = try container.decodeIfPresent([String].self, forKey: .addresses) else { return }
        self.addresses = Set(try addresses.map { try container.address($0, .addresses) })
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(services.map(\.description), forKey: .services)
        try container.encodeIfPresent(name, forKey: .name)
        try container.encodeIfPresent(namePrefix, forKey: .namePrefix)
        try container.encodeIfPresent(minimumRSSI, forKey: .minimumRSSI)
        try container.encodeIfPresent(addresses?.map(\.description).sorted(), forKey: .addresses)
    }
}

extension KeyedDecodingContainer {
    fileprivate func address(_ key: Key) throws -> BluetoothAddress {
        try address(try decode(String.self, forKey: key), key)
    }

    fileprivate func address(_ text: String, _ key: Key) throws -> BluetoothAddress {
        guard let address = BluetoothAddress(text) else {
            throw DecodingError.dataCorruptedError(
                forKey: key,
                in: self,
                debugDescription: "'\(text)' is not an address"
            )
        }
        return address
    }
}

/// The text is `2a37`, or `180d/2a37` for the characteristic of that service; `#` and the platform's identity follow
/// for a discovered characteristic.
extension CharacteristicID: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        let parts = text.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let handle = parts.count > 1 ? parts.last.map { String($0) } : nil
        let uuids = (parts.first ?? "").split(separator: "/").map { BluetoothUUID($0) }
        switch (uuids.count, uuids.first ?? nil, uuids.last ?? nil) {
        case (1, let uuid?, _) where handle == nil: self.init(uuid)
        case (2, let service?, let uuid?): self.init(uuid, in: service, handle: handle)
        default:
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "'\(text)' is not a characteristic")
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        let name = service.map { "\($0)/\(uuid)" } ?? "\(uuid)"
        try container.encode(handle.map { "\(name)#\($0)" } ?? name)
    }
}
