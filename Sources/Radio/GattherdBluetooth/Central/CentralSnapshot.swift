/// The links and subscriptions of a central, to be restored in the next run of the program.
public struct CentralSnapshot: Hashable, Sendable {
    public struct Entry: Hashable, Sendable {
        public var id: PeripheralID
        /// True if there was a link.
        public var wasConnected: Bool
        /// The characteristics that were subscribed.
        public var notifying: [CharacteristicID]

        public init(id: PeripheralID, wasConnected: Bool, notifying: [CharacteristicID] = []) {
            self.id = id
            self.wasConnected = wasConnected
            self.notifying = notifying
        }
    }

    public var peripherals: [Entry]

    public init(peripherals: [Entry]) {
        self.peripherals = peripherals
    }
}

extension CentralSnapshot: Codable {}

extension CentralSnapshot.Entry: Codable {
    private enum CodingKeys: String, CodingKey {
        case adapter
        case address
        case wasConnected
        case notifying
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = PeripheralID(
            adapter: try container.address(.adapter),
            address: try container.address(.address)
        )
        wasConnected = try container.decode(Bool.self, forKey: .wasConnected)
        notifying = try container.decode([CharacteristicID].self, forKey: .notifying)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id.adapter.description, forKey: .adapter)
        try container.encode(id.address.description, forKey: .address)
        try container.encode(wasConnected, forKey: .wasConnected)
        try container.encode(notifying, forKey: .notifying)
    }
}

extension KeyedDecodingContainer {
    fileprivate func address(_ key: Key) throws -> BluetoothAddress {
        let text = try decode(String.self, forKey: key)
        guard let address = BluetoothAddress(text) else {
            throw DecodingError.dataCorruptedError(forKey: key, in: self, debugDescription: "'\(text)' is no address")
        }
        return address
    }
}

/// The text is `2a37`, or `180d/2a37` for the characteristic of that service.
extension CharacteristicID: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        let uuids = text.split(separator: "/").map { BluetoothUUID($0) }
        switch (uuids.count, uuids.first ?? nil, uuids.last ?? nil) {
        case (1, let uuid?, _): self.init(uuid)
        case (2, let service?, let uuid?): self.init(uuid, in: service)
        default:
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "'\(text)' is no characteristic")
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(service.map { "\($0)/\(uuid)" } ?? "\(uuid)")
    }
}
