public import GattherdGATT

/// The adapters of a host, or of several gateways, and the peripherals around them.
public struct Scenario: Hashable, Sendable {
    public var timing = Timing()
    /// True if bluetoothd answers an `AcquireNotify` that has failed and releases its characteristic.
    ///
    /// BlueZ does so from 5.84 on.
    public var answersFailedAcquire = false
    /// The adapters of the only host, if there are no ``gateways``.
    public var adapters = [AdapterSpec()]
    /// The gateways with their positions; empty for one host that all peripherals reach.
    public var gateways: [GatewaySpec] = []
    /// The propagation between the gateways and the peripherals.
    public var air = AirSpec()
    public var peripherals: [PeripheralSpec] = []

    public init() {}

    /// The hosts with their adapters; the only one has no name.
    var allGateways: [(name: String?, adapters: [AdapterSpec])] {
        gateways.isEmpty ? [(nil, adapters)] : gateways.map { ($0.name, $0.adapters) }
    }
}

/// The delays and timeouts of bluetoothd and the kernel.
///
/// Defaults are those observed with BlueZ 5.66.
public struct Timing: Hashable, Sendable {
    /// The time from `Disconnect` to its reply.
    public var disconnect = Duration.seconds(2)
    /// The time after which `Connect` to an absent peripheral fails.
    public var connectTimeout = Duration.seconds(40)
    /// The time after which a device without advertisements is removed.
    public var temporaryTimeout = Duration.seconds(30)
    /// The time after which an unanswered request fails.
    public var attTimeout = Duration.seconds(30)
    /// The time after which a pairing that waits for an agent fails.
    public var pairingTimeout = Duration.seconds(30)
    /// The time after which a link without radio contact is lost.
    public var supervisionTimeout = Duration.milliseconds(420)

    public init() {}

    /// The default timing with a `Disconnect` of 50 ms, for tests.
    public static let quick: Timing = {
        var timing = Timing()
        timing.disconnect = .milliseconds(50)
        return timing
    }()
}

/// One local controller.
public struct AdapterSpec: Hashable, Sendable {
    /// The name: `hci` and a number.
    public var name = "hci0"
    public var address = "00:00:5E:00:53:00"
    /// The maximum number of links; `nil` for no limit.
    public var slots: Int?
    public var isPowered = true
    public var isPresent = true

    public init() {}
}

/// One remote device: identity, advertising and GATT server.
public struct PeripheralSpec: Hashable, Sendable {
    /// The peripheral's pairing capability.
    public enum Pairing: String, CaseIterable, Hashable, Sendable {
        case justWorks = "just-works"
        /// Displays its ``passkey``, which is entered on the host.
        case showsPasskey = "shows-passkey"
        /// Has its ``passkey`` entered, which the host displays.
        case entersPasskey = "enters-passkey"
        /// Both sides display its ``passkey`` for comparison.
        case compares
        case refused
    }

    /// The name in orders.
    public var name: String
    public var address: BluetoothAddress
    public var addressType = "random"
    public var advertising = AdvertisingSpec()
    /// The waypoints, one if the peripheral stays in its place; empty without gateways.
    public var path: [Waypoint] = []
    /// The names of the adapters in range; empty for all.
    ///
    /// With several gateways, the name of a gateway or, for example, `west/hci0`.
    public var adapters: [String] = []
    /// False if the peripheral is out of range at the start.
    public var isPresent = true
    /// The time from the start of an attempt to the link.
    public var connectLatency = Duration.milliseconds(100)
    /// The time from the link to `ServicesResolved`.
    public var resolveLatency = Duration.milliseconds(30)
    /// The latency of one ATT response.
    public var attLatency = Duration.milliseconds(2)
    /// The number of attempts that fail before the first success.
    public var connectFailures = 0
    /// False if `Connected` becomes true without a signal.
    public var signalsConnected = true
    public var pairing = Pairing.justWorks
    /// The passkey of six decimal digits.
    public var passkey: UInt32 = 123_456
    /// The ATT MTU.
    public var mtu: UInt16 = 517
    /// The number of newest notifications that the host loses when the link ends.
    public var lostTail = 0
    public var services: [ServiceSpec] = []
    /// The stored records, if it has any.
    public var records: RecordsSpec?

    public init(name: String, address: BluetoothAddress) {
        self.name = name
        self.address = address
    }
}

/// A peripheral's advertising data and parameters.
public struct AdvertisingSpec: Hashable, Sendable {
    public var name: String?
    public var services: [BluetoothUUID] = []
    /// The payloads by company, sent in turn.
    public var manufacturerData: [UInt16: [[UInt8]]] = [:]
    /// The payloads by service, sent in turn.
    public var serviceData: [BluetoothUUID: [[UInt8]]] = [:]
    /// The time for which each of several payloads is advertised.
    public var turn = Duration.seconds(1)
    /// The signal strength in dBm; between positions, that at a distance of 1 m.
    public var rssi: Int16 = -60
    public var appearance: UInt16?
    public var interval = Duration.milliseconds(200)
    public var isConnectable = true
    /// False if the data has no Flags, which makes it visible only to scans with a filter.
    public var hasFlags = true
    /// The transmission power in dBm.
    public var txPower: Int16?

    public init() {}

    /// The index of the payload at a time since the start.
    func turn(at time: Duration) -> Int { Int(time / turn) }
}
