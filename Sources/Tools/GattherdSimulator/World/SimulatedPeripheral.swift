import GattherdGATT

/// A remote device: its GATT server and its whims.
///
/// It outlives whatever bluetoothd knows of it.
struct SimulatedPeripheral: Sendable {
    /// One characteristic and what has become of it.
    struct Characteristic: Sendable {
        let spec: CharacteristicSpec
        let service: Int
        var value: [UInt8]
        /// How many notifications it has sent.
        var sent: UInt64 = 0
        var energyReset: UInt64 = 0
        var rate: Double
        var isSubscribed = false
    }

    let spec: PeripheralSpec
    var characteristics: [Characteristic]
    var layout: GATTLayout
    /// Grows when the layout changes.
    var layoutVersion = 0
    /// False when it is out of range or switched off.
    var isPresent: Bool
    var silence = SimulatorOrder.Silence.off
    var connectFailures: Int
    var faults = FaultList()
    /// The adapters that it has keys of.
    var bonds: Set<Int> = []
    /// Who holds its link.
    var link: DeviceKey?
    /// What it notified last and the host has not handed on; empty without a lost tail.
    var tail: [VirtualBlueZ.Unhandled] = []
    /// How long it takes for each answer, at least; by order.
    var slowness = Duration.zero
    /// False while it was told not to advertise.
    var wantsToAdvertise = true
    /// The adapter of a link that the kernel still holds although its bluetoothd is gone.
    var abandonedBy: Int?
    /// True when the kernel keeps the link at the next crash of bluetoothd.
    var survivesCrash = false
    /// Grows when the timers of its notifications are set anew.
    var rateEpoch = 0
    /// Grows when it starts to advertise.
    var airEpoch = 0

    private static let lowestHandle: UInt16 = 0x000A
    private var firstHandle = Self.lowestHandle

    init(_ spec: PeripheralSpec) {
        self.spec = spec
        isPresent = spec.isPresent
        connectFailures = spec.connectFailures
        layout = GATTLayout(spec.services, from: Self.lowestHandle)
        characteristics = spec.services.enumerated().flatMap { index, service in
            service.characteristics.map {
                Characteristic(spec: $0, service: index, value: $0.value, rate: $0.rate)
            }
        }
    }

    /// A connected peripheral does not advertise.
    var isAdvertising: Bool { isPresent && wantsToAdvertise && link == nil && abandonedBy == nil }

    /// How long the answer to one ATT request takes.
    var attLatency: Duration { max(spec.attLatency, slowness) }

    /// How long the discovery of its services takes, which is half as much work when they are known.
    func resolveLatency(isKnown: Bool) -> Duration {
        isKnown ? spec.resolveLatency / 2 + slowness * 8 : spec.resolveLatency + slowness * 15
    }

    /// Whether it answers requests.
    var answers: Bool { isPresent && silence != .all }

    /// Moves every handle and leaves some services out.
    mutating func changeServices(hiding hidden: Set<BluetoothUUID>) {
        layoutVersion += 1
        firstHandle = Self.lowestHandle &+ UInt16(truncatingIfNeeded: 0x40 * (layoutVersion % 64))
        layout = GATTLayout(spec.services, from: firstHandle, hiding: hidden)
        for index in characteristics.indices { characteristics[index].isSubscribed = false }
    }

    /// Takes these services away and brings all others back; no handle moves.
    mutating func hideServices(_ hidden: Set<BluetoothUUID>) {
        layoutVersion += 1
        layout = GATTLayout(spec.services, from: firstHandle, hiding: hidden, keepsPlaces: true)
        for index in characteristics.indices
        where hidden.contains(spec.services[characteristics[index].service].uuid) {
            characteristics[index].isSubscribed = false
        }
    }

    /// Answers a read: the value, or an ATT error code.
    func read(_ index: Int, offset: Int) -> Result<[UInt8], ATTError> {
        let characteristic = characteristics[index]
        guard characteristic.spec.properties.contains(.read) else { return .success([]) }
        guard offset == 0 || characteristic.spec.isLong else { return .failure(ATTError(code: 0x0B)) }
        guard offset <= characteristic.value.count else { return .failure(ATTError(code: 0x07)) }
        return .success(Array(characteristic.value.dropFirst(offset)))
    }

    /// Takes a written value.
    ///
    /// - Returns: What it notifies because of that, if anything.
    /// - Throws: The ATT error when it refuses the value.
    mutating func write(_ index: Int, _ value: [UInt8], offset: Int) throws(ATTError) -> [UInt8]? {
        let rule = characteristics[index].spec.writing
        if let code = rule.error(for: value, offset: offset) { throw ATTError(code: code) }
        if rule.outcome == .resetEnergy {
            resetEnergy(ofService: characteristics[index].service)
            return nil
        }
        let isNew = characteristics[index].value != value
        characteristics[index].value = value
        return isNew && rule.outcome == .storeAndNotifyChange ? value : nil
    }

    /// The next value that it would notify of its own accord; it becomes the one that reads give.
    mutating func produce(_ index: Int) -> [UInt8] {
        let characteristic = characteristics[index]
        let payload = characteristic.spec.source.payload(
            characteristic.sent,
            stored: characteristic.value,
            energyReset: characteristic.energyReset
        )
        characteristics[index].value = payload
        return payload
    }

    private mutating func resetEnergy(ofService service: Int) {
        for index in characteristics.indices where characteristics[index].service == service {
            characteristics[index].energyReset = characteristics[index].sent
        }
    }
}

/// The code of an ATT Error Response.
///
/// Bluetooth Core Specification, Vol 3, Part F, "Error Response".
struct ATTError: Error, Hashable, Sendable {
    let code: UInt8
}
