import GattherdGATT

/// A remote device: its GATT server and its ordered faults.
///
/// Independent of bluetoothd's knowledge of it.
struct SimulatedPeripheral: Sendable {
    /// One characteristic and its state.
    struct Characteristic: Sendable {
        let spec: CharacteristicSpec
        let service: Int
        var value: [UInt8]
        /// The number of notifications that were sent.
        var sent: UInt64 = 0
        /// The value of ``sent`` at the last reset of the energy expended.
        var energyReset: UInt64 = 0
        var rate: Double
        var isSubscribed = false
    }

    let spec: PeripheralSpec
    var characteristics: [Characteristic]
    var layout: GATTLayout
    /// The number of layout changes.
    var layoutVersion = 0
    /// False while the peripheral is out of range or switched off.
    var isPresent: Bool
    var silence = SimulatorOrder.Silence.off
    var connectFailures: Int
    var faults = FaultList()
    /// The adapters whose keys the peripheral has.
    var bonds: Set<Int> = []
    /// The stored records, if it has any.
    var records: SimulatedRecords?
    /// The device and adapter of the current link.
    var link: DeviceKey?
    /// The ordered minimum latency of each response.
    var slowness = Duration.zero
    /// The number of times that the peripheral has started or stopped to advertise.
    ///
    /// Timers of earlier epochs are ignored.
    var airEpoch = 0
    /// False while advertising is switched off by order.
    var isAdvertisingEnabled = true
    /// The adapter of a link that the kernel has kept after a crash of bluetoothd.
    var abandonedBy: Int?
    /// True if the kernel keeps the link over the next crash of bluetoothd.
    var survivesCrash = false

    private static let lowestHandle: UInt16 = 0x000A
    private var firstHandle = Self.lowestHandle

    /// - Parameters:
    ///   - spec: The peripheral of the scenario.
    ///   - start: The wall clock at the start of the simulation, as a time since 1970.
    init(_ spec: PeripheralSpec, start: Duration = .zero) {
        self.spec = spec
        records = spec.records.map { SimulatedRecords($0, start: start, seed: spec.address.value) }
        isPresent = spec.isPresent
        connectFailures = spec.connectFailures
        layout = GATTLayout(spec.services, from: Self.lowestHandle)
        characteristics = spec.services.enumerated().flatMap { index, service in
            service.characteristics.map { characteristic in
                let value = Self.value(of: characteristic, at: spec.address)
                return Characteristic(spec: characteristic, service: index, value: value, rate: characteristic.rate)
            }
        }
    }

    /// The value before the first notification; the weather depends on the place.
    private static func value(of characteristic: CharacteristicSpec, at address: BluetoothAddress) -> [UInt8] {
        guard case .weather = characteristic.source else { return characteristic.value }
        return characteristic.source.payload(0, stored: characteristic.value, seed: address.value)
    }

    /// True if the peripheral advertises, which it does only without a link.
    var isAdvertising: Bool { isPresent && isAdvertisingEnabled && link == nil && abandonedBy == nil }

    /// The latency of one ATT response.
    var attLatency: Duration { max(spec.attLatency, slowness) }

    /// The duration of service discovery, which is about half for cached services.
    func resolveLatency(isKnown: Bool) -> Duration {
        isKnown ? spec.resolveLatency / 2 + slowness * 8 : spec.resolveLatency + slowness * 15
    }

    /// Moves all handles and hides some services.
    mutating func changeServices(hiding hidden: Set<BluetoothUUID>) {
        layoutVersion += 1
        firstHandle = Self.lowestHandle &+ UInt16(truncatingIfNeeded: 0x40 * (layoutVersion % 64))
        layout = GATTLayout(spec.services, from: firstHandle, hiding: hidden)
        for index in characteristics.indices { characteristics[index].isSubscribed = false }
    }

    /// Hides these services and shows all others.
    ///
    /// Handles do not move.
    mutating func hideServices(_ hidden: Set<BluetoothUUID>) {
        layoutVersion += 1
        layout = GATTLayout(spec.services, from: firstHandle, hiding: hidden, keepsPlaces: true)
        for index in characteristics.indices
        where hidden.contains(spec.services[characteristics[index].service].uuid) {
            characteristics[index].isSubscribed = false
        }
    }

    /// Ends the link, and with it all subscriptions.
    mutating func endLink() {
        link = nil
        records?.cancel()
        for index in characteristics.indices { characteristics[index].isSubscribed = false }
    }

    /// Returns the value of a characteristic, or an ATT error.
    func read(_ index: Int, offset: Int) -> Result<[UInt8], ATTError> {
        let characteristic = characteristics[index]
        guard characteristic.spec.properties.contains(.read) else { return .success([]) }
        guard offset == 0 || characteristic.spec.isLong else { return .failure(ATTError(code: 0x0B)) }
        guard offset <= characteristic.value.count else { return .failure(ATTError(code: 0x07)) }
        return .success(Array(characteristic.value.dropFirst(offset)))
    }

    /// Sets the value of a characteristic that is the device's clock.
    mutating func updateClock(_ index: Int, at now: Duration) {
        guard characteristics[index].spec.records == .clock, let records else { return }
        characteristics[index].value = records.currentTime(at: now)
    }

    /// Applies a written value.
    ///
    /// - Returns: The value to notify, if any.
    /// - Throws: The ATT error if the value is refused.
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

    /// Returns the next generated value, which reads return from now on.
    mutating func produce(_ index: Int) -> [UInt8] {
        let characteristic = characteristics[index]
        let payload = characteristic.spec.source.payload(
            characteristic.sent,
            stored: characteristic.value,
            energyReset: characteristic.energyReset,
            seed: spec.address.value
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
