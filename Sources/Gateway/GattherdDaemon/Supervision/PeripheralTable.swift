public import GattherdBluetooth
import GattherdGATT
public import GattherdModel

/// The peripherals that BlueZ knows, and the links of those that are not devices.
struct PeripheralTable: Sendable {
    /// The shortest time between two reports that an adapter hears advertisements.
    private static let hearingInterval = Duration.seconds(1)

    private var peripherals: [PeripheralID: PeripheralStatus] = [:]
    /// The adapters that have known a peripheral, for lookups by address.
    private var adapters: Set<BluetoothAddress> = []
    /// The connected peripherals of each adapter that are not devices.
    private var otherLinks: [BluetoothAddress: Set<BluetoothAddress>] = [:]
    /// The time of the last hearing report of each adapter.
    private var heard: [BluetoothAddress: Duration] = [:]

    subscript(id: PeripheralID) -> PeripheralStatus? { peripherals[id] }

    var all: some Collection<PeripheralStatus> { peripherals.values }

    /// Returns the peripheral with an address on each adapter that knows it, by adapter.
    func peripherals(at address: BluetoothAddress) -> [PeripheralStatus] {
        adapters.sorted().compactMap { peripherals[PeripheralID(adapter: $0, address: address)] }
    }

    /// Records a peripheral and returns its previous status.
    mutating func update(_ peripheral: PeripheralStatus) -> PeripheralStatus? {
        adapters.insert(peripheral.id.adapter)
        return peripherals.updateValue(peripheral, forKey: peripheral.id)
    }

    mutating func setDisconnected(_ id: PeripheralID) {
        peripherals[id]?.isConnected = false
    }

    mutating func remove(_ id: PeripheralID) {
        peripherals[id] = nil
    }

    /// Removes the links of an adapter that is gone.
    mutating func remove(adapter: BluetoothAddress) {
        otherLinks[adapter] = nil
    }

    /// Removes all peripherals: bluetoothd is gone.
    mutating func removeAll() {
        (peripherals, otherLinks) = ([:], [:])
    }

    /// Records whether a peripheral that is not a device is connected.
    ///
    /// - Returns: The number of such links of the adapter, if it has changed.
    mutating func setOtherLink(_ id: PeripheralID, isConnected: Bool) -> Int? {
        let before = otherLinks[id.adapter, default: []]
        guard before.contains(id.address) != isConnected else { return nil }
        let after = isConnected ? before.union([id.address]) : before.subtracting([id.address])
        otherLinks[id.adapter] = after
        return after.count
    }

    /// Returns true if an advertisement must be reported: once a second for each adapter.
    mutating func isHearingDue(_ adapter: BluetoothAddress, now: Duration) -> Bool {
        if let last = heard[adapter], now - last < Self.hearingInterval { return false }
        heard[adapter] = now
        return true
    }
}

/// The peripherals that are offered for enrolment.
struct EnrolmentOffers: Sendable {
    /// The maximum number of addresses that are remembered: random addresses could fill the set.
    private static let capacity = 10_000

    /// The handler of unknown peripherals, if any.
    private var offer: Supervisor.Offer?
    /// The addresses that were enrolled or declined; they are not offered again while BlueZ knows them.
    private var decided: Set<BluetoothAddress> = []

    /// Offers all peripherals to another handler from now on.
    mutating func start(_ offer: Supervisor.Offer?) {
        (self.offer, decided) = (offer, [])
    }

    /// Offers a peripheral that is not a device, unless it was enrolled or declined before.
    mutating func offer(_ peripheral: PeripheralStatus) {
        guard let offer, !decided.contains(peripheral.id.address), offer(peripheral) else { return }
        if decided.count >= Self.capacity { decided.removeAll() }
        decided.insert(peripheral.id.address)
    }

    /// Offers an address again after BlueZ has removed its peripheral.
    mutating func remove(_ address: BluetoothAddress) {
        decided.remove(address)
    }

    mutating func removeAll() {
        decided = []
    }
}

// The traits of peripherals, as Bluetooth reports them.

extension AdvertisedTraits {
    public init(_ advertisement: Advertisement) {
        self.init(name: advertisement.name, services: advertisement.services, advertisement.data)
    }

    public init(_ peripheral: PeripheralStatus) {
        self.init(name: peripheral.name, services: peripheral.services, peripheral.advertisement)
    }

    /// Creates the traits of the last advertisement of a sensor.
    init(_ advertisement: HeardAdvertisement) {
        var (companies, services): ([UInt16: [UInt8]], [BluetoothUUID: [UInt8]]) = ([:], [:])
        for frame in advertisement.frames {
            switch frame.source {
            case .manufacturer(let company): companies[company] = frame.octets
            case .serviceData(let uuid): services[uuid] = frame.octets
            }
        }
        self.init(
            name: advertisement.name,
            services: advertisement.services.filter { services[$0] == nil },
            manufacturerData: companies,
            serviceData: services
        )
    }

    private init(name: String?, services: [BluetoothUUID], _ data: AdvertisementData) {
        self.init(
            name: name,
            services: services,
            manufacturerData: data.manufacturerData,
            serviceData: data.serviceData
        )
    }
}
