import GattherdGATT

/// The records that a peripheral stores, and how it sends them.
public struct RecordsSpec: Hashable, Sendable {
    /// The services with which records are downloaded.
    public enum Form: String, CaseIterable, Hashable, Sendable {
        /// Glucose Service with a Record Access Control Point.
        case glucose
        /// A service of its own with a Record Access Control Point and numbers of up to 32 bits.
        case numbered
        /// The history of an Aranet4.
        case blocks = "aranet4"
        /// The log of a RuuviTag.
        case log = "ruuvi"
    }

    public var form = Form.glucose
    /// The records at the start.
    public var count = 100
    /// The maximum number of records that are stored; beyond them the oldest is overwritten.
    public var capacity = 1_000_000
    /// The time between two records; zero for no new ones.
    public var interval = Duration.seconds(60)
    /// The bits of a record's number: 16, or 32 for ``Form/numbered``.
    public var numberBits = 16
    /// The records sent per second.
    public var speed = 1000
    /// The device's clock minus the right time.
    public var clockError = Duration.zero
    /// The records after which the link is cut, a random number in this range; `nil` for no cuts.
    public var cut: ClosedRange<Int>?

    public init() {}

    /// The services of a peripheral with these records.
    var services: [ServiceSpec] {
        switch form {
        case .glucose: [glucose, Self.currentTime]
        case .numbered: [numbered, Self.currentTime]
        case .blocks: [aranet]
        case .log: [nordic]
        }
    }

    private static func characteristic(
        _ uuid: BluetoothUUID,
        _ properties: CharacteristicProperties,
        value: [UInt8] = [],
        _ role: RecordRole? = nil
    ) -> CharacteristicSpec {
        var spec = CharacteristicSpec(uuid, properties, value: value)
        spec.records = role
        return spec
    }

    private static var currentTime: ServiceSpec {
        ServiceSpec(BluetoothUUID(0x1805), [characteristic(BluetoothUUID(0x2A2B), .read, .clock)])
    }

    private var glucose: ServiceSpec {
        ServiceSpec(
            BluetoothUUID(0x1808),
            [
                Self.characteristic(BluetoothUUID(0x2A18), .notify, .values),
                Self.characteristic(BluetoothUUID(0x2A51), .read, value: [0, 0]),
                Self.characteristic(BluetoothUUID(0x2A52), [.write, .indicate], .control),
            ]
        )
    }

    private var numbered: ServiceSpec {
        ServiceSpec(
            BluetoothUUID(0xFFF0),
            [
                Self.characteristic(BluetoothUUID(0xFFF1), .notify, .values),
                Self.characteristic(BluetoothUUID(0x2A52), [.write, .indicate], .control),
            ]
        )
    }

    private var aranet: ServiceSpec {
        ServiceSpec(
            BluetoothUUID(0xFCE0),
            [
                Self.characteristic(Self.aranetUUID("1402"), .write, .selector),
                Self.characteristic(Self.aranetUUID("2005"), .read, .block),
            ]
        )
    }

    private static func aranetUUID(_ digits: String) -> BluetoothUUID {
        BluetoothUUID("f0cd\(digits)-95da-4f4b-9ac8-aa55d312af0c") ?? BluetoothUUID(0)
    }

    private var nordic: ServiceSpec {
        ServiceSpec(
            Self.nordicUUID("0001"),
            [
                Self.characteristic(Self.nordicUUID("0002"), [.write, .writeWithoutResponse], .control),
                Self.characteristic(Self.nordicUUID("0003"), .notify, .values),
            ]
        )
    }

    private static func nordicUUID(_ digits: String) -> BluetoothUUID {
        BluetoothUUID("6e40\(digits)-b5a3-f393-e0a9-e50e24dcca9e") ?? BluetoothUUID(0)
    }
}

/// The part of a characteristic in the download of records.
public enum RecordRole: Hashable, Sendable {
    /// Notifies the records.
    case values
    /// Accepts requests. It answers them if it can be subscribed; otherwise the records' characteristic does.
    case control
    /// The device's clock.
    case clock
    /// Accepts the index of a block.
    case selector
    /// Contains the selected block.
    case block
}
