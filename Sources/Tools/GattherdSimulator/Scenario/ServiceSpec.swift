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

/// One characteristic: properties, values and behaviour.
public struct CharacteristicSpec: Hashable, Sendable {
    public var uuid: BluetoothUUID
    public var properties: CharacteristicProperties
    /// The initial value.
    public var value: [UInt8]
    public var source: PayloadSource = .stored
    /// The notifications per second; 0 for none.
    public var rate = 0.0
    public var writing = WriteRule()
    /// False if reads at an offset are refused with 0x0B.
    public var isLong = true
    /// True if access needs an encrypted link.
    public var isEncrypted = false
    public var descriptors: [DescriptorSpec] = []
    /// The part in the download of stored records.
    public var records: RecordRole?

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

/// The handling of written values.
public struct WriteRule: Hashable, Sendable {
    public enum Outcome: Hashable, Sendable {
        case store
        /// Stores the value and notifies it if it has changed.
        case storeAndNotifyChange
        /// Resets the energy expended of the heart rate measurement in the same service.
        case resetEnergy
    }

    /// The permitted numbers of bytes.
    ///
    /// Others are refused with 0x0D.
    public var lengths = 0...512
    /// The only permitted value, if any.
    ///
    /// Others are refused with ``refusal``.
    public var only: [UInt8]?
    /// The ATT error for all values; with ``only``, for all others.
    public var refusal: UInt8?
    public var outcome = Outcome.store
    /// The notifications that answer written values.
    public var answers: [NotifiedAnswer] = []

    public init() {}

    /// Returns the answers to a written value: the first whose beginning fits, and others with the same beginning.
    func answers(to value: [UInt8]) -> [NotifiedAnswer] {
        guard let first = answers.first(where: { value.starts(with: $0.beginning) }) else { return [] }
        return answers.filter { $0.beginning == first.beginning }
    }

    /// The ATT error for `value`; `nil` if it is accepted.
    func error(for value: [UInt8], offset: Int) -> UInt8? {
        guard offset == 0 else { return 0x0B }
        guard lengths.contains(value.count) else { return 0x0D }
        return value == only ? nil : refusal
    }
}

/// The notifications that answer a written value.
public struct NotifiedAnswer: Hashable, Sendable {
    /// The first bytes of the written value.
    public var beginning: [UInt8]
    /// The characteristic that notifies; `nil` for the written one.
    public var characteristic: BluetoothUUID?
    public var notifications: [[UInt8]]

    public init(to beginning: [UInt8], on characteristic: BluetoothUUID? = nil, notifications: [[UInt8]]) {
        self.beginning = beginning
        self.characteristic = characteristic
        self.notifications = notifications
    }
}
