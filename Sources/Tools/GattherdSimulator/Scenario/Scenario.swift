public import GattherdGATT

/// A neighbourhood: the adapters of the gateway and the peripherals around it.
public struct Scenario: Hashable, Sendable {
    public var timing = Timing()
    public var adapters = [AdapterSpec()]
    public var peripherals: [PeripheralSpec] = []

    public init() {}
}

/// How long things take that bluetoothd and the kernel decide.
///
/// All is as seen with BlueZ 5.66.
public struct Timing: Hashable, Sendable {
    /// From `Disconnect` to its reply.
    public var disconnect = Duration.seconds(2)
    /// After which `Connect` to a peripheral that does not advertise gives up.
    public var connectTimeout = Duration.seconds(40)
    /// After which an object goes whose peripheral has not advertised.
    public var temporaryTimeout = Duration.seconds(30)
    /// After which a request that the peripheral does not answer fails.
    public var attTimeout = Duration.seconds(30)
    /// After which a pairing that waits for an agent fails.
    public var pairingTimeout = Duration.seconds(30)
    /// After which a link without radio contact is lost.
    public var supervisionTimeout = Duration.milliseconds(420)

    public init() {}

    /// As it is, but for what only keeps tests waiting: `Disconnect` takes 50 ms.
    public static let quick: Timing = {
        var timing = Timing()
        timing.disconnect = .milliseconds(50)
        return timing
    }()
}

/// One local controller.
public struct AdapterSpec: Hashable, Sendable {
    /// `hci` and a number.
    public var name = "hci0"
    public var address = "00:00:5E:00:53:00"
    /// How many links it can hold; `nil` for any number.
    public var slots: Int?
    public var isPowered = true
    public var isPresent = true

    public init() {}
}

/// One remote device: who it is, how it advertises, what its GATT server has.
public struct PeripheralSpec: Hashable, Sendable {
    /// What it can do to make sure of the other side.
    public enum Pairing: String, CaseIterable, Hashable, Sendable {
        case justWorks = "just-works"
        /// It shows its ``passkey``, which somebody enters at the gateway.
        case showsPasskey = "shows-passkey"
        /// Its ``passkey`` is shown at the gateway, and entered there.
        case entersPasskey = "enters-passkey"
        /// Both show its ``passkey``, and somebody compares.
        case compares
        case refused
    }

    /// How the control interface calls it.
    public var name: String
    public var address: BluetoothAddress
    public var addressType = "random"
    public var advertising = AdvertisingSpec()
    /// The names of the adapters that can hear it; empty for all.
    public var adapters: [String] = []
    /// False for one that must be made to appear.
    public var isPresent = true
    /// From the radio being free for it to the link being up.
    public var connectLatency = Duration.milliseconds(100)
    /// From the link being up to `ServicesResolved`.
    public var resolveLatency = Duration.milliseconds(30)
    /// How long the answer to one ATT request takes.
    public var attLatency = Duration.milliseconds(2)
    /// How many attempts to connect fail before the first that works.
    public var connectFailures = 0
    /// False when `Connected` turns true without a signal.
    public var signalsConnected = true
    public var pairing = Pairing.justWorks
    /// Six decimal digits.
    public var passkey: UInt32 = 123_456
    /// The ATT MTU.
    public var mtu: UInt16 = 517
    /// How many of the newest notifications the host loses when the link ends.
    public var lostTail = 0
    public var services: [ServiceSpec] = []

    public init(name: String, address: BluetoothAddress) {
        self.name = name
        self.address = address
    }
}

/// What a peripheral says on the air.
public struct AdvertisingSpec: Hashable, Sendable {
    public var name: String?
    public var services: [BluetoothUUID] = []
    /// What it sends in turn.
    public var manufacturerData: [UInt16: [[UInt8]]] = [:]
    /// What it sends in turn.
    public var serviceData: [BluetoothUUID: [[UInt8]]] = [:]
    /// How long each of several payloads is sent.
    public var turn = Duration.seconds(1)
    /// In dBm.
    public var rssi: Int16 = -60
    public var appearance: UInt16?
    public var interval = Duration.milliseconds(200)
    public var isConnectable = true
    /// False when its data has no Flags, so that only a scan with a filter shows it.
    public var hasFlags = true
    /// In dBm.
    public var txPower: Int16?

    public init() {}

    /// Which of several payloads is sent at a time since the start.
    func turn(at time: Duration) -> Int { Int(time / turn) }
}
