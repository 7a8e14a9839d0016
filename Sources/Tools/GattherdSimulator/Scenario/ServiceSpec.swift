public import GattherdGATT

/// One service of a peripheral's GATT server.
public struct ServiceSpec: Hashable, Sendable {
    public var uuid: BluetoothUUID
    public var characteristics: [CharacteristicSpec]

    public init(_ uuid: BluetoothUUID, _ characteristics: [CharacteristicSpec]) {
        self.uuid = uuid
        self.characteristics = characteristics
    }
}

/// One characteristic: what may be done with it and what it says.
public struct CharacteristicSpec: Hashable, Sendable {
    public var uuid: BluetoothUUID
    public var properties: CharacteristicProperties
    /// What a read gives before anything was notified or written.
    public var value: [UInt8]
    public var source: PayloadSource = .stored
    /// Notifications in a second, 0 for none of its own accord.
    public var rate = 0.0
    public var writing = WriteRule()
    /// False when a read at an offset is refused with 0x0B.
    public var isLong = true
    /// True when it needs an encrypted link.
    public var isEncrypted = false
    public var descriptors: [DescriptorSpec] = []

    public init(_ uuid: BluetoothUUID, _ properties: CharacteristicProperties, value: [UInt8] = []) {
        self.uuid = uuid
        self.properties = properties
        self.value = value
    }
}

public struct DescriptorSpec: Hashable, Sendable {
    public var uuid: BluetoothUUID
    public var value: [UInt8]

    public init(_ uuid: BluetoothUUID, value: [UInt8]) {
        self.uuid = uuid
        self.value = value
    }
}

extension CharacteristicProperties {
    /// BlueZ's names of the properties, in the order of the bits.
    static let words: [(word: String, property: Self)] = [
        ("broadcast", .broadcast), ("read", .read), ("write-without-response", .writeWithoutResponse),
        ("write", .write), ("notify", .notify), ("indicate", .indicate),
    ]

    /// The value of `GattCharacteristic1.Flags`.
    var flags: [String] { Self.words.filter { contains($0.property) }.map(\.word) }

    var canSubscribe: Bool { !isDisjoint(with: [.notify, .indicate]) }
}

/// What a peripheral does with a value that is written.
public struct WriteRule: Hashable, Sendable {
    public enum Outcome: Hashable, Sendable {
        case store
        /// A value that differs is notified, also to the one who wrote it.
        case storeAndNotifyChange
        /// Sets the energy of the heart rate measurement beside it to 0.
        case resetEnergy
    }

    /// How many octets it may have; others are refused with 0x0D.
    public var lengths = 0...512
    /// The only value that it may have; others are refused with ``refusal``.
    public var only: [UInt8]?
    /// The ATT error for every value, or, with ``only``, for the others.
    public var refusal: UInt8?
    public var outcome = Outcome.store

    public init() {}

    /// The ATT error for `value`, if it is refused.
    func error(for value: [UInt8], offset: Int) -> UInt8? {
        guard offset == 0 else { return 0x0B }
        guard lengths.contains(value.count) else { return 0x0D }
        return value == only ? nil : refusal
    }
}
